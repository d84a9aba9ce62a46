package payment

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/money"
	"market/internal/wire"
)

var (
	addressForm = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)
	hashForm    = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`)
	caip2Form   = regexp.MustCompile(`^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$`)
	evmForm     = regexp.MustCompile(`^eip155:(0|[1-9][0-9]*)$`)
	v1NameForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	secondsForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,9})$`)
)

// Accepted is one entry of a challenge's `accepts`, as a server offers it and a client echoes it.
type Accepted struct {
	Scheme            string
	Network           string // CAIP-2
	Amount            money.Amount
	Asset             common.Address
	PayTo             common.Address
	MaxTimeoutSeconds int64

	Raw   json.RawMessage // the very bytes, unknown members included, as they have to be echoed
	extra map[string]wire.Value
}

// Extra returns a member of `extra` that is a string.
func (a Accepted) Extra(name string) (string, bool) {
	v, ok := a.extra[name]
	return v.Text, ok && v.Kind == wire.String
}

// An object reads members of a JSON object by type. Path names it in error texts, which never hold anything of what was sent.
type object struct {
	path string
	wire.Value
}

func (o object) text(name string) (string, error) {
	v := o.Members[name]
	if v.Kind != wire.String {
		return "", malformed(CodePayload, "%s%s must be a string.", o.path, name)
	}
	return v.Text, nil
}

func (o object) object(name string) (object, error) {
	v := o.Members[name]
	if v.Kind != wire.Object {
		return object{}, malformed(CodePayload, "%s%s must be an object.", o.path, name)
	}
	return object{o.path + name + ".", v}, nil
}

func (o object) address(name string) (common.Address, error) {
	s, err := o.text(name)
	if err != nil {
		return common.Address{}, err
	}
	if !addressForm.MatchString(s) {
		return common.Address{}, malformed(CodePayload, "%s%s must be an address: 0x and 40 hexadecimal digits.", o.path, name)
	}
	return common.HexToAddress(s), nil
}

func (o object) hash(name string) (common.Hash, error) {
	s, err := o.text(name)
	if err != nil {
		return common.Hash{}, err
	}
	if !hashForm.MatchString(s) {
		return common.Hash{}, malformed(CodePayload, "%s%s must be 32 bytes: 0x and 64 hexadecimal digits.", o.path, name)
	}
	return common.HexToHash(s), nil
}

func (o object) integer(name string) (money.Amount, error) {
	s, err := o.text(name)
	if err != nil {
		return money.Amount{}, err
	}
	n, err := money.ParseAmount(s)
	if err != nil {
		return money.Amount{}, malformed(CodePayload,
			"%s%s must be a string of decimal digits without sign, point, exponent or leading zero, below 2^256.", o.path, name)
	}
	return n, nil
}

func (o object) network(name string) (string, error) {
	s, err := o.text(name)
	if err != nil {
		return "", err
	}
	if !caip2Form.MatchString(s) || strings.HasPrefix(s, "eip155:") && !evmForm.MatchString(s) {
		return "", malformed(CodeNetwork, "%s%s must be a CAIP-2 id such as eip155:84532; short network names belong to x402 v1.", o.path, name)
	}
	return s, nil
}

// v1Network reads a name of the form that a network's v1_name has; which network it is, if any of ours, is not known here.
func (o object) v1Network(name string) (string, error) {
	s, err := o.text(name)
	if err != nil {
		return "", err
	}
	if !v1NameForm.MatchString(s) {
		return "", malformed(CodeNetwork, "%s%s must be a short name such as base-sepolia; CAIP-2 ids belong to x402 v2.", o.path, name)
	}
	return s, nil
}

func (o object) seconds(name string) (int64, error) {
	v := o.Members[name]
	if v.Kind != wire.Number || !secondsForm.MatchString(v.Text) {
		return 0, malformed(CodePayload, "%s%s must be a whole number of seconds, written as a JSON integer.", o.path, name)
	}
	return strconv.ParseInt(v.Text, 10, 64)
}

func readAccepted(o object) (Accepted, error) { return readEntry(o, object.network, "amount") }

// readEntry reads an entry of either version: the two name the network in different ways, and the amount by different members.
func readEntry(o object, network func(o object, name string) (string, error), amount string) (Accepted, error) {
	a := Accepted{Raw: json.RawMessage(o.Raw)}
	var err error
	if a.Scheme, err = o.text("scheme"); err != nil {
		return Accepted{}, err
	}
	if a.Network, err = network(o, "network"); err != nil {
		return Accepted{}, err
	}
	if a.Amount, err = o.integer(amount); err != nil {
		return Accepted{}, err
	}
	if a.Asset, err = o.address("asset"); err != nil {
		return Accepted{}, err
	}
	if a.PayTo, err = o.address("payTo"); err != nil {
		return Accepted{}, err
	}
	if a.MaxTimeoutSeconds, err = o.seconds("maxTimeoutSeconds"); err != nil {
		return Accepted{}, err
	}
	// Some SDKs drop an empty map and some keep it, so absent, null and {} are one.
	if o.Given("extra") {
		extra, err := o.object("extra")
		if err != nil {
			return Accepted{}, err
		}
		a.extra = extra.Members
	}
	return a, nil
}
