// Package eip4361 is the text of "Sign-In with Ethereum": what a wallet shows and signs to say who it is to a site. It prints a message, reads one back
// where it is letter for letter what would be printed, and checks members that mean the same wherever they are used. It does not judge a signature.
package eip4361

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Limits of a message.
const (
	TextBytesMax  = 4 << 10
	ResourcesMax  = 16
	NonceBytesMax = 128
)

var nonceForm = regexp.MustCompile(`^[A-Za-z0-9]{8,` + strconv.Itoa(NonceBytesMax) + `}$`)

// IsNonce says whether a text has the form of a nonce.
func IsNonce(text string) bool { return nonceForm.MatchString(text) }

// A Message is what the wallet signs, in members. A nil one was left out. Every member is printable, see Printable.
type Message struct {
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

const greeting = " wants you to sign in with your Ethereum account:"

// Text is the message as EIP-4361 prints it and wallets show it. There is no line end at the end. Without a statement the two empty lines
// around it stay.
func (m Message) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n%s\n\n", m.Domain, greeting, m.Address.Hex())
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

// Digest is what personal_sign signs of the text.
func (m Message) Digest() common.Hash {
	text := m.Text()
	return crypto.Keccak256Hash(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d", len(text)), []byte(text))
}

// ErrForm is a text that is no message.
var ErrForm = errors.New("not a message of EIP-4361")

// Parse reads a text that is letter for letter what Text prints of its members: no text has two readings, and no two readings have one text.
func Parse(text string) (Message, error) {
	if len(text) > TextBytesMax {
		return Message{}, fmt.Errorf("%w: longer than %d bytes", ErrForm, TextBytesMax)
	}
	l := &lines{rest: strings.Split(text, "\n")}
	var m Message
	domain, ok := strings.CutSuffix(l.next(), greeting)
	address := l.next()
	if !ok || !common.IsHexAddress(address) || l.next() != "" {
		return Message{}, fmt.Errorf("%w: its first three lines are other ones", ErrForm)
	}
	m.Domain, m.Address = domain, common.HexToAddress(address)
	if statement := l.next(); statement != "" {
		m.Statement = &statement
		if l.next() != "" {
			return Message{}, fmt.Errorf("%w: no empty line follows the statement", ErrForm)
		}
	}
	m.URI, m.Version = l.must("URI"), l.must("Version")
	id, err := strconv.ParseUint(l.must("Chain ID"), 10, 63)
	m.ChainID = id
	m.Nonce, m.IssuedAt = l.must("Nonce"), l.must("Issued At")
	m.ExpirationTime, m.NotBefore, m.RequestID = l.may("Expiration Time"), l.may("Not Before"), l.may("Request ID")
	m.Resources = l.resources()
	switch {
	case err != nil || l.missing != "":
		return Message{}, fmt.Errorf("%w: a line is missing or out of place: %s", ErrForm, l.missing)
	case len(m.Resources) > ResourcesMax:
		return Message{}, fmt.Errorf("%w: more than %d resources", ErrForm, ResourcesMax)
	case !Printable(strings.ReplaceAll(text, "\n", "")):
		return Message{}, fmt.Errorf("%w: it has other than printable ASCII", ErrForm)
	case m.Text() != text:
		return Message{}, fmt.Errorf("%w: something in it is spelled in another way, or follows it", ErrForm)
	}
	return m, nil
}

// lines takes a message apart from its beginning, and keeps the name of the first line that was not there.
type lines struct {
	rest    []string
	missing string
}

func (l *lines) next() string {
	if len(l.rest) == 0 {
		return ""
	}
	line := l.rest[0]
	l.rest = l.rest[1:]
	return line
}

func (l *lines) may(name string) *string {
	if len(l.rest) == 0 {
		return nil
	}
	value, ok := strings.CutPrefix(l.rest[0], name+": ")
	if !ok {
		return nil
	}
	l.next()
	return &value
}

func (l *lines) must(name string) string {
	value := l.may(name)
	if value == nil {
		if l.missing == "" {
			l.missing = name
		}
		return ""
	}
	return *value
}

func (l *lines) resources() []string {
	if len(l.rest) == 0 || l.rest[0] != "Resources:" {
		return nil
	}
	l.next()
	resources := []string{}
	for len(l.rest) > 0 && strings.HasPrefix(l.rest[0], "- ") {
		resources = append(resources, strings.TrimPrefix(l.next(), "- "))
	}
	return resources
}

// Printable keeps a member on its line. With a line break in it, two sets of members could make one text, and somebody could be made to sign
// one and be held to the other.
func Printable(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < 0x20 || c > 0x7e }) < 0
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// Origin is scheme and host of a URI as a browser compares them.
func Origin(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" {
		return "", false
	}
	host := strings.ToLower(u.Host)
	if port, known := defaultPorts[u.Scheme]; known {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host, true
}

var instantForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`)

// Instant reads a time. It is stricter than time.Parse, which forgives hours of one digit and a comma.
func Instant(text string) (time.Time, bool) {
	if !instantForm.MatchString(text) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil
}
