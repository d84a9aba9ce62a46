package payment

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"market/internal/chain"
	"market/internal/wire"
)

// identifierKey names the extension by which a client gives its payment a name of its own. The name is never on a chain, so it tells
// who made the payment from who has merely seen its authorization there.
const identifierKey = "payment-identifier"

// identifierInfo is what a client echoes of the declaration, with its name beside.
const identifierInfo = `{"required":false}`

// identifierDeclaration is the extensions member of our challenge. The name is optional: stock clients add none.
const identifierDeclaration = `{"` + identifierKey + `":{"info":` + identifierInfo + `,"schema":{"type":"object","properties":{` +
	`"required":{"type":"boolean"},"id":{"type":"string","minLength":16,"maxLength":128,"pattern":"^[a-zA-Z0-9_-]+$"}},"required":["required"]}}}`

var identifierForm = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)

// readExtensions keeps what the client echoes of our extensions, for Match, and takes its name for the payment. A client that echoes our
// declaration as it stands gives none.
func (p *Payload) readExtensions(o object) error {
	if !o.Given("extensions") {
		return nil
	}
	extensions, err := o.object("extensions")
	if err != nil {
		return err
	}
	p.echoed = extensions.Members
	if !extensions.Given(identifierKey) {
		return nil
	}
	echoed, err := extensions.object(identifierKey)
	if err != nil || !echoed.Given("info") {
		return err
	}
	info, err := echoed.object("info")
	if err != nil || !info.Given("id") {
		return err
	}
	id, err := info.text("id")
	if err != nil {
		return err
	}
	if !identifierForm.MatchString(id) {
		return malformed(CodePayload, "%sid must be 16 to 128 letters, digits, hyphens and underscores.", info.path)
	}
	p.Identifier = id
	return nil
}

// NewIdentifier returns a name for a payment that nobody can guess.
func NewIdentifier() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return "pay_" + hex.EncodeToString(b[:])
}

// TakesIdentifier says whether the server lets a payment have a name.
func (r Required) TakesIdentifier() bool { return r.identifier != nil }

// declaredIdentifier returns the declaration of the extension; nil where there is none that can be echoed with a name in it.
func declaredIdentifier(root wire.Value) json.RawMessage {
	declaration := root.Members["extensions"].Members[identifierKey]
	if declaration.Members["info"].Kind != wire.Object {
		return nil
	}
	return declaration.Raw
}

// EncodeIdentified is EncodePayload for a challenge that takes an identifier, with one: the declaration is echoed with the name in it.
func EncodeIdentified(r Required, accepted Accepted, s chain.Signed, identifier string) (string, error) {
	if !r.TakesIdentifier() {
		return "", errors.New("encode payment: the server takes no payment-identifier")
	}
	if !identifierForm.MatchString(identifier) {
		return "", errors.New("encode payment: a payment-identifier has 16 to 128 letters, digits, hyphens and underscores")
	}
	var declaration, info map[string]json.RawMessage
	if err := json.Unmarshal(r.identifier, &declaration); err != nil {
		return "", fmt.Errorf("encode payment: %w", err)
	}
	if err := json.Unmarshal(declaration["info"], &info); err != nil {
		return "", fmt.Errorf("encode payment: %w", err)
	}
	info["id"] = encodeJSON(identifier)
	declaration["info"] = encodeJSON(info)
	return encodePayload(accepted, r.Resource, encodeJSON(map[string]any{identifierKey: declaration}), s)
}
