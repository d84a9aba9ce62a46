package siwx

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

const (
	// AgeMax is how old a sign-in may be.
	AgeMax = 5 * time.Minute
	// skew forgives a wallet's clock that is fast.
	skew = time.Minute
)

// Expect is who we are.
type Expect struct {
	Domain   string   // host, and port where it is not the scheme's own
	Origin   string   // scheme://domain
	ChainIDs []uint64 // that we know
}

// A Proof is that somebody who holds the key of Address signed in here. It is good for one use: see Store.UseOnce.
type Proof struct {
	Address   common.Address
	Nonce     string
	ExpiresAt time.Time // after this Verify refuses the same header
}

// Verify checks a header as of now. The error is a refusal for unauthorized with a Code as its cause.
func Verify(header string, who Expect, now time.Time) (Proof, error) {
	m, signature, err := read(header)
	if err != nil {
		return Proof{}, err
	}
	if err := m.isFor(who); err != nil {
		return Proof{}, err
	}
	until, err := m.window(now)
	if err != nil {
		return Proof{}, err
	}
	signer, err := chain.Recover(m.digest(), signature)
	if err != nil || signer != m.Address || signer == (common.Address{}) {
		return Proof{}, refuse(CodeSignature, "the signature is not that of address over the EIP-4361 text of these members")
	}
	return Proof{Address: signer, Nonce: m.Nonce, ExpiresAt: until}, nil
}

// isFor keeps a signature that was given to another site from working here.
func (m message) isFor(who Expect) error {
	if m.Domain != who.Domain {
		return refuse(CodeDomain, "domain must be %s", who.Domain)
	}
	if origin, ok := originOf(m.URI); !ok || origin != who.Origin {
		return refuse(CodeURI, "uri must begin with %s", who.Origin)
	}
	if !slices.Contains(who.ChainIDs, m.ChainID) {
		return refuse(CodeUnsupportedChain, "chainId is none of the networks that are used here")
	}
	return nil
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// originOf is scheme and host as a browser compares them.
func originOf(uri string) (string, bool) {
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

// window returns until when the message is good.
func (m message) window(now time.Time) (time.Time, error) {
	issued, ok := instant(m.IssuedAt)
	switch {
	case !ok:
		return time.Time{}, refuse(CodeIssuedAt, "issuedAt must be a time such as 2026-11-29T12:00:00.000Z")
	case now.Sub(issued) > AgeMax:
		return time.Time{}, refuse(CodeTooOld, "issuedAt is more than %d s ago", int(AgeMax.Seconds()))
	case issued.Sub(now) > skew:
		return time.Time{}, refuse(CodeInFuture, "issuedAt is in the future")
	}
	until := issued.Add(AgeMax)
	if m.ExpirationTime != nil {
		expires, ok := instant(*m.ExpirationTime)
		if !ok {
			return time.Time{}, refuse(CodeExpirationTime, "expirationTime must be a time such as 2026-11-29T12:05:00.000Z")
		}
		if !now.Before(expires) {
			return time.Time{}, refuse(CodeExpired, "expirationTime has passed")
		}
		if expires.Before(until) {
			until = expires
		}
	}
	if m.NotBefore != nil {
		from, ok := instant(*m.NotBefore)
		if !ok {
			return time.Time{}, refuse(CodeNotBefore, "notBefore must be a time such as 2026-11-29T12:00:00.000Z")
		}
		if now.Before(from) {
			return time.Time{}, refuse(CodeNotYetValid, "notBefore has not come")
		}
	}
	return until, nil
}

var instantForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`)

// instant is stricter than time.Parse, which forgives hours of one digit and a comma.
func instant(text string) (time.Time, bool) {
	if !instantForm.MatchString(text) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil
}
