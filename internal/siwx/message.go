package siwx

import (
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// A message is what the wallet signed, in members. A nil one was left out.
type message struct {
	Domain         string
	Address        common.Address
	Statement      *string
	URI            string
	Version        string
	ChainID        uint64
	Nonce          string
	IssuedAt       string
	ExpirationTime *string
	NotBefore      *string
	RequestID      *string
	Resources      []string // nil: left out
}

// text is the message as EIP-4361 prints it and wallets show it. There is no line end at the end. Without a statement the two empty lines
// around it stay.
func (m message) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s wants you to sign in with your Ethereum account:\n%s\n\n", m.Domain, m.Address.Hex())
	if m.Statement != nil {
		b.WriteString(*m.Statement + "\n")
	}
	fmt.Fprintf(&b, "\nURI: %s\nVersion: %s\nChain ID: %d\nNonce: %s\nIssued At: %s", m.URI, m.Version, m.ChainID, m.Nonce, m.IssuedAt)
	for _, line := range []struct {
		name  string
		value *string
	}{{"Expiration Time", m.ExpirationTime}, {"Not Before", m.NotBefore}, {"Request ID", m.RequestID}} {
		if line.value != nil {
			b.WriteString("\n" + line.name + ": " + *line.value)
		}
	}
	if m.Resources != nil {
		b.WriteString("\nResources:")
	}
	for _, resource := range m.Resources {
		b.WriteString("\n- " + resource)
	}
	return b.String()
}

// digest is what personal_sign signs of a text.
func (m message) digest() common.Hash {
	text := m.text()
	return crypto.Keccak256Hash(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d", len(text)), []byte(text))
}
