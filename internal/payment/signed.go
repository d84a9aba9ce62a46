package payment

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/chain"
	"market/internal/wire"
)

// formatEIP712 is how all that we sign is signed.
const formatEIP712 = "eip712"

// signedBytesMax is the longest document that ReadSigned looks at: a call's record with everything that may stand in it.
const signedBytesMax = 64 << 10

// A Signed statement, as it travels: the form of x402's signed offers and receipts, and of our own.
type Signed struct {
	Format    string    `json:"format"`
	Payload   Statement `json:"payload"`
	Signature string    `json:"signature"`
}

// A Notary signs statements for the wallets that take money. The zero Notary signs nothing.
type Notary struct{ keys map[common.Address]chain.Key }

// NewNotary returns the notary of these wallets.
func NewNotary(keys ...chain.Key) Notary {
	n := Notary{keys: map[common.Address]chain.Key{}}
	for _, k := range keys {
		n.keys[k.Address()] = k
	}
	return n
}

// SignFor signs what the wallet payTo says. It returns nil where the notary does not have its key, as after a treasury was given up:
// then there is nobody who could sign.
func (n Notary) SignFor(payTo common.Address, s Statement) (*Signed, error) {
	k, ok := n.keys[payTo]
	if !ok {
		return nil, nil
	}
	signature, err := k.SignStatement(s.domain(), s.hash())
	if err != nil {
		return nil, err
	}
	return &Signed{Format: formatEIP712, Payload: s, Signature: hexutil.Encode(signature.Bytes())}, nil
}

// Signer returns whose signature it is. A statement that was changed after it was signed has some other signer, or none: whoever asks has
// to know whom to expect.
func (s Signed) Signer() (common.Address, error) {
	raw, err := hexutil.Decode(s.Signature)
	if err != nil {
		return common.Address{}, errors.New("the signature is not 0x and hexadecimal digits")
	}
	signature, err := chain.ParseSignature(raw)
	if err != nil {
		return common.Address{}, err
	}
	return chain.Recover(s.Payload.domain().Digest(s.Payload.hash()), signature)
}

// Digest is what was signed.
func (s Signed) Digest() common.Hash { return s.Payload.domain().Digest(s.Payload.hash()) }

// ErrNoStatement is that a document holds nothing that this package could check.
var ErrNoStatement = errors.New("no signed receipt or offer in it")

// ReadSigned finds the signed statement in a JSON document: the statement itself, a call's record or a problem document with a `receipt`,
// or the content of PAYMENT-RESPONSE. It reads strictly: a member that is missing, unknown, twice there or of another type is an error,
// because what is shown as signed has to be all that was signed.
func ReadSigned(document []byte) (Signed, error) {
	if len(document) > signedBytesMax {
		return Signed{}, fmt.Errorf("longer than %d bytes", signedBytesMax)
	}
	root, err := wire.ParseObject(document)
	if err != nil {
		return Signed{}, fmt.Errorf("read signed statement: %w", err)
	}
	inner, found := signedIn(root)
	if !found {
		return Signed{}, ErrNoStatement
	}
	switch format := inner.Members["format"]; {
	case format.Text == "jws":
		return Signed{}, errors.New("it is signed in the format jws; only eip712 can be checked here")
	case format.Kind != wire.String || format.Text != formatEIP712:
		return Signed{}, errors.New("its format is not eip712")
	case inner.Members["signature"].Kind != wire.String:
		return Signed{}, errors.New("its signature is not a string")
	case inner.Members["payload"].Kind != wire.Object:
		return Signed{}, errors.New("it has no payload")
	}
	s := Signed{Format: formatEIP712, Signature: inner.Members["signature"].Text}
	s.Payload, err = readStatement(inner.Members["payload"])
	return s, err
}

// signedIn looks where a statement may stand in a document.
func signedIn(root wire.Value) (wire.Value, bool) {
	for _, v := range []wire.Value{
		root, root.Members["receipt"], root.Members["extensions"].Members[receiptKey].Members["info"].Members["receipt"],
	} {
		if _, signed := v.Members["signature"]; signed {
			return v, true
		}
	}
	return wire.Value{}, false
}

// readStatement tells the kinds apart by a member that only one of them has.
func readStatement(payload wire.Value) (Statement, error) {
	switch {
	case payload.Given("outcome"):
		return readPayload[OutcomeReceipt](payload)
	case payload.Given("validUntil"), payload.Given("scheme"):
		return readPayload[SignedTerms](payload)
	}
	return readPayload[Receipt](payload)
}

func readPayload[S Statement](payload wire.Value) (Statement, error) {
	var s S
	d := json.NewDecoder(strings.NewReader(string(payload.Raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, errors.New("its payload has a member that is unknown or of another type")
	}
	// What is encoded has every member, so one that is missing shows, and so does one in another case, which the decoder takes for ours.
	again, err := wire.ParseObject(encodeJSON(s))
	if err != nil {
		return nil, fmt.Errorf("read payload: %w", err)
	}
	for name := range payload.Members {
		if _, ours := again.Members[name]; !ours {
			return nil, errors.New("its payload has a member that is unknown or in another case")
		}
	}
	for name, member := range again.Members {
		given, there := payload.Members[name]
		if !there && name == "transaction" && member.Text == "" {
			continue // x402 lets a receipt withhold it by leaving it out
		}
		if given.Kind != member.Kind {
			return nil, fmt.Errorf("its payload has no %s", name)
		}
	}
	if v := again.Members["version"].Text; v != "1" {
		return nil, errors.New("its version is not 1")
	}
	return s, nil
}
