package siwx

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/chain"
	"market/internal/eip4361"
	"market/internal/wire"
)

// Header is the name of the header.
const Header = "SIGN-IN-WITH-X"

const (
	// headerBytesMax caps the header before anything of it is decoded; an ordinary one takes less than 1 KiB.
	headerBytesMax = 8 << 10
)

var (
	addressForm = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)
	chainForm   = regexp.MustCompile(`^eip155:[1-9][0-9]{0,18}$`)
)

// FromHeaders finds the sign-in of a request; signed is false where there is none.
func FromHeaders(h http.Header) (header string, signed bool, err error) {
	switch values := h.Values(Header); len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", true, refuse(CodeHeader, "the header is there more than once")
}

// read returns the message of a header and the signature over it. Every member is of its type and can be printed in one way only.
func read(header string) (message, chain.Signature, error) {
	root, err := wire.DecodeObject(header, headerBytesMax)
	switch {
	case errors.Is(err, wire.ErrTooLong):
		return message{}, chain.Signature{}, refuse(CodeHeader, "longer than %d bytes", headerBytesMax)
	case errors.Is(err, wire.ErrNotBase64):
		return message{}, chain.Signature{}, refuse(CodeHeader, "not base64")
	case err != nil:
		return message{}, chain.Signature{}, refuse(CodeHeader, "not base64 of a JSON object in which no member occurs twice")
	}
	r := reader{root: root}
	m := message{
		Domain: r.text("domain"), Statement: r.optional("statement"), URI: r.text("uri"), Version: r.text("version"),
		IssuedAt: r.text("issuedAt"), ExpirationTime: r.optional("expirationTime"), NotBefore: r.optional("notBefore"),
		RequestID: r.optional("requestId"), Resources: r.resources(),
	}
	m.Nonce = r.nonce()
	m.ChainID = r.chainID()
	m.Address = r.address()
	signature := r.signature()
	if r.err == nil && m.Version != "1" {
		r.fail(CodeMessage, `version must be "1"`)
	}
	if r.err == nil && m.Statement != nil && *m.Statement == "" {
		r.fail(CodeMessage, "statement must not be empty; leave it out")
	}
	return m, signature, r.err
}

// A reader takes members of the header and keeps the first thing that was wrong.
type reader struct {
	root wire.Value
	err  error
}

func (r *reader) fail(code Code, format string, args ...any) {
	if r.err == nil {
		r.err = refuse(code, format, args...)
	}
}

func (r *reader) text(name string) string {
	v := r.root.Members[name]
	if v.Kind != wire.String || !eip4361.Printable(v.Text) {
		r.fail(CodeMessage, "%s must be a string of printable ASCII", name)
	}
	return v.Text
}

// optional returns nil for a member that was left out, which is another text than an empty one.
func (r *reader) optional(name string) *string {
	if !r.root.Given(name) {
		return nil
	}
	text := r.text(name)
	return &text
}

func (r *reader) resources() []string {
	if !r.root.Given("resources") {
		return nil
	}
	list := r.root.Members["resources"]
	if list.Kind != wire.Array || len(list.Items) > eip4361.ResourcesMax {
		r.fail(CodeMessage, "resources must be a list of at most %d", eip4361.ResourcesMax)
		return nil
	}
	resources := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		if item.Kind != wire.String || item.Text == "" || !eip4361.Printable(item.Text) {
			r.fail(CodeMessage, "resources must be strings of printable ASCII")
		}
		resources = append(resources, item.Text)
	}
	return resources
}

func (r *reader) nonce() string {
	nonce := r.text("nonce")
	if !eip4361.IsNonce(nonce) {
		r.fail(CodeNonce, "nonce must be 8 to %d letters and digits", eip4361.NonceBytesMax)
	}
	return nonce
}

func (r *reader) chainID() uint64 {
	text := r.text("chainId")
	if kind := r.text("type"); kind != "eip191" || !strings.HasPrefix(text, "eip155:") {
		r.fail(CodeUnsupportedChain, "type must be eip191, and chainId one of eip155")
	}
	if !chainForm.MatchString(text) {
		r.fail(CodeChainID, "chainId must be a CAIP-2 id such as eip155:84532")
		return 0
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(text, "eip155:"), 10, 64)
	if err != nil {
		r.fail(CodeChainID, "chainId must be a CAIP-2 id such as eip155:84532")
	}
	return id
}

func (r *reader) address() common.Address {
	text := r.text("address")
	if !addressForm.MatchString(text) {
		r.fail(CodeMessage, "address must be 0x and 40 hexadecimal digits")
	}
	return common.HexToAddress(text)
}

// signature looks at the length before it decodes, so that a compact one is not cut into another.
func (r *reader) signature() chain.Signature {
	if scheme := r.optional("signatureScheme"); scheme != nil && *scheme != "eip191" {
		r.fail(CodeMalformedSignature, "signatureScheme must be eip191: contract wallets are not supported")
	}
	text := r.text("signature")
	raw, err := hexutil.Decode(text)
	if err != nil || len(raw) != chain.SignatureBytesMin {
		r.fail(CodeMalformedSignature, "signature must be 0x and 65 bytes in hexadecimal (r, s, v)")
		return chain.Signature{}
	}
	signature, err := chain.ParseSignature(raw)
	if err != nil {
		r.fail(CodeMalformedSignature, "signature must have v 27 or 28 (or 0, 1), and s in the lower half of the curve order")
	}
	return signature
}
