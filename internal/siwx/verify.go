package siwx

import (
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/eip4361"
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
	if err := isFor(m, who); err != nil {
		return Proof{}, err
	}
	until, err := window(m, now)
	if err != nil {
		return Proof{}, err
	}
	signer, err := chain.Recover(m.Digest(), signature)
	if err != nil || signer != m.Address || signer == (common.Address{}) {
		return Proof{}, refuse(CodeSignature, "the signature is not that of address over the EIP-4361 text of these members")
	}
	return Proof{Address: signer, Nonce: m.Nonce, ExpiresAt: until}, nil
}

// isFor keeps a signature that was given to another site from working here.
func isFor(m message, who Expect) error {
	if m.Domain != who.Domain {
		return refuse(CodeDomain, "domain must be %s", who.Domain)
	}
	if origin, ok := eip4361.Origin(m.URI); !ok || origin != who.Origin {
		return refuse(CodeURI, "uri must begin with %s", who.Origin)
	}
	if !slices.Contains(who.ChainIDs, m.ChainID) {
		return refuse(CodeUnsupportedChain, "chainId is none of the networks that are used here")
	}
	return nil
}

// window returns until when the message is good.
func window(m message, now time.Time) (time.Time, error) {
	issued, ok := eip4361.Instant(m.IssuedAt)
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
		expires, ok := eip4361.Instant(*m.ExpirationTime)
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
		from, ok := eip4361.Instant(*m.NotBefore)
		if !ok {
			return time.Time{}, refuse(CodeNotBefore, "notBefore must be a time such as 2026-11-29T12:00:00.000Z")
		}
		if now.Before(from) {
			return time.Time{}, refuse(CodeNotYetValid, "notBefore has not come")
		}
	}
	return until, nil
}
