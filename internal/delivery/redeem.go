package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/answer"
	"market/internal/call"
	"market/internal/identity"
	"market/internal/refusal"
	"market/internal/siwx"
	"market/internal/upstream"
)

// seal encrypts a served answer for keeping. An answer that cannot be kept is still given: it only cannot be fetched again.
func (p *Path) seal(d Delivery, result *upstream.Result) []byte {
	if d.Outcome != call.Served || d.Trial || result == nil || result.Streamed {
		return nil
	}
	sealed, err := p.Answers.Seal(d.Call, answer.Answer{Status: result.Status, Header: result.Header, Body: result.Body})
	if err != nil {
		p.OnError(err)
		return nil
	}
	return sealed
}

// redeem gives a served answer out again, to whoever proves to be its caller. Once mined, a payment's signature is public: it identifies a
// call and proves nothing about who asks.
func (p *Path) redeem(ctx context.Context, r Request, paid *admitted, a Answer) Answer {
	kept, err := p.Answers.Find(ctx, p.DB, a.Call)
	switch {
	case errors.Is(err, answer.ErrNone), errors.Is(err, answer.ErrExpired):
		a.Reason, a.Detail = call.AnswerExpired, "the call was served, and its answer is not kept any more"
		if r.Target.Endpoint.Stream {
			a.Detail = "the call was served, and a streamed answer is not kept"
		}
		return a
	case err != nil:
		return *p.unsure(err)
	}
	if no := p.prove(ctx, r, paid, kept.Facts(a.Payment.Payer)); no != nil {
		a.Reason, a.Detail, a.Err = no.Reason, no.Detail, no.Cause
		return a
	}
	opened, err := p.Answers.Open(kept)
	if err != nil {
		// Its key is gone, or the row was tampered with: the answer is lost to us, and the call stays served.
		a.Reason, a.Detail, a.Err = call.AnswerExpired, "the call was served, and its answer cannot be read any more", err
		return a
	}
	a.Reason, a.Status, a.Header, a.Body = call.OK, opened.Status, opened.Header, opened.Body
	return a
}

// prove says why a request does not prove to be of the caller of a call; nil where it does.
func (p *Path) prove(ctx context.Context, r Request, paid *admitted, of answer.Facts) *refusal.Error {
	asking := answer.Asking{Identifier: paid.identifier}
	if !r.Stranger {
		asking.Source = r.Source // else it is a proxy's, and proves nothing about who is behind it
	}
	if answer.Prove(of, asking).Redeems() {
		return nil
	}
	// A sign-in is used up by being looked at, so it is looked at last.
	var no *refusal.Error
	if asking.SignedIn, no = p.signedIn(ctx, r, of.Payer); no != nil {
		return refusal.New(call.ProofRequired, "%s", no.Detail).WithCause(no.Cause)
	}
	if answer.Prove(of, asking).Redeems() {
		return nil
	}
	return refusal.New(call.ProofRequired, "a mined payment is public and proves nothing about who sends it: send the payment-identifier that the "+
		"call was paid with, or a SIGN-IN-WITH-X of the payer, or ask from the same address within 10 minutes")
}

// signedIn returns who a request is signed in as; the zero address where it carries no sign-in. Only the payer's is taken, and only once.
func (p *Path) signedIn(ctx context.Context, r Request, payer common.Address) (common.Address, *refusal.Error) {
	header, signed, err := siwx.FromHeaders(r.Header)
	if err != nil || !signed {
		return common.Address{}, optional(err)
	}
	proof, err := siwx.Verify(header, p.SignIn, p.Now())
	if err != nil {
		return common.Address{}, asRefusal(err)
	}
	if proof.Address != payer {
		return common.Address{}, nil
	}
	first, err := siwx.Store{}.UseOnce(ctx, p.DB, proof)
	if err != nil {
		return common.Address{}, asRefusal(err)
	}
	if !first {
		return common.Address{}, asRefusal(siwx.Used())
	}
	return proof.Address, nil
}

func optional(err error) *refusal.Error {
	if err == nil {
		return nil
	}
	return asRefusal(err)
}

const (
	tidyEvery = time.Minute
	tidyMax   = 1000
	// trialsTidyMax is more: on the first minute of a day all rows of the day before are over.
	trialsTidyMax = 10_000
)

// Tidy deletes what nobody may have any more or needs, until ctx ends: answers, sign-ins and sessions whose time is over, and the counts of past days'
// trial calls. Every replica runs it.
func (p *Path) Tidy(ctx context.Context) {
	Every(ctx, tidyEvery, func(ctx context.Context) {
		_, err := p.Answers.DeleteExpired(ctx, p.DB, tidyMax)
		if err == nil {
			_, err = siwx.Store{}.DeleteExpired(ctx, p.DB, tidyMax)
		}
		if err == nil {
			_, err = identity.Store{}.DeleteExpired(ctx, p.DB, tidyMax)
		}
		if err == nil {
			err = forgetTrials(ctx, p.DB, trialsTidyMax)
		}
		if err != nil && ctx.Err() == nil {
			p.OnError(fmt.Errorf("tidy: %w", err))
		}
	})
}
