package crashtest

import (
	"net/http"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
	"market/internal/chain"
	"market/internal/devnet"
)

// A scene brings a call to the point where the server dies. It begins with a listed service and a signed payment, and the server dies at the
// point as soon as the call comes there.
type scene struct {
	name string
	// work is what the service does before the crash; nil: what it does after it as well.
	work http.HandlerFunc
	// before happens in a server that does not die.
	before func(t testing.TB, s *stage)
	play   func(t testing.TB, s *stage)
	// mend undoes what was arranged on the chain or at the node, before the server starts again.
	mend func(t testing.TB, s *stage)
}

func refuses(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "not for me", http.StatusUnprocessableEntity)
}

// walk is a call that nothing disturbs.
func walk(work http.HandlerFunc) scene {
	return scene{name: "a call that nothing disturbs", work: work, play: func(t testing.TB, s *stage) {
		if got := s.send(t.Context()); got.status == 0 && s.point == "after:answer" {
			t.Fatal("the caller got no answer")
		}
	}}
}

// resting is a call whose payment arrives while the service rests: it failed in a trial after the terms were given.
var resting = scene{name: "the service rests", play: func(t testing.TB, s *stage) {
	s.service.Do(apptest.Fails)
	if a := s.Send(t, s.asking().Trial(), ""); a.Status != http.StatusBadGateway {
		t.Fatalf("the failing trial: %d %s", a.Status, a.Body)
	}
	s.service.Do(s.after)
	s.askedBefore = s.service.Asked()
	s.send(t.Context())
}}

// paused is a call that our own simulation stops: nothing of it is shown.
var paused = scene{name: "the token is paused", play: func(t testing.TB, s *stage) {
	pause(t, s, true)
	s.send(t.Context())
}, mend: func(t testing.TB, s *stage) { pause(t, s, false) }}

// again is a payment that was released and comes again.
var again = scene{name: "a released payment comes again", before: func(t testing.TB, s *stage) {
	pause(t, s, true)
	if got := s.send(t.Context()); got.code != string(call.Released) {
		t.Fatalf("a payment that simulation stops: %+v", got)
	}
	pause(t, s, false)
}, play: func(t testing.TB, s *stage) { s.send(t.Context()) }}

func pause(t testing.TB, s *stage, paused bool) {
	t.Helper()
	if err := s.Chain.SetPaused(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
}

// unclear is a payment that somebody else has sent while the node does not tell its logs: it may have paid. then happens once the call is
// unclear.
func unclear(name string, then func(t testing.TB, s *stage)) scene {
	return scene{name: name, play: func(t testing.TB, s *stage) {
		s.Relay(t, s.paid)
		s.node.fail("eth_getLogs")
		got := s.send(t.Context())
		if then == nil {
			return // it died on the way
		}
		if got.code != string(call.SettlementPending) {
			t.Fatalf("a payment that may have paid: %+v", got)
		}
		then(t, s)
	}, mend: func(_ testing.TB, s *stage) { s.node.heal() }}
}

var (
	// front is such a payment whose first answer is cut short.
	front = unclear("somebody else sent the payment", nil)
	// frontRetried is one whose caller is faster than the sweeper.
	frontRetried = unclear("an unclear payment comes again", func(t testing.TB, s *stage) {
		s.holdOff(t, time.Hour)
		s.node.heal()
		s.send(t.Context())
	})
	// frontFound is one that the sweeper finds.
	frontFound = unclear("an unclear payment is found", func(_ testing.TB, s *stage) { s.node.heal() })
	// foundRetried is one whose caller comes after it was found.
	foundRetried = unclear("a found payment comes again", func(t testing.TB, s *stage) {
		s.node.heal()
		s.becomes(t, call.Settled)
		s.send(t.Context())
	})
	// foundLeft is one whose caller does not come in time.
	foundLeft = unclear("a found payment is left alone", func(t testing.TB, s *stage) {
		s.node.heal()
		s.becomes(t, call.Settled)
		s.Shift(t, grace)
	})
)

// spent is a payment whose nonce its payer uses for something else while the node does not tell its logs.
var spent = scene{name: "the nonce is used by something else", play: func(t testing.TB, s *stage) {
	other := s.paid
	_, elsewhere := apptest.NewKey(t)
	other.To = elsewhere.Address()
	var err error
	if other.Signature, err = s.payer.SignAuthorization(domain, other.Authorization); err != nil {
		t.Fatal(err)
	}
	s.Relay(t, other)
	s.node.fail("eth_getLogs")
	s.send(t.Context())
	s.node.heal()
	s.mine(t, 3)
}, mend: func(_ testing.TB, s *stage) { s.node.heal() }}

var domain = chain.NewDomain(chain.Asset{Address: devnet.TokenAddress(), EIP712Name: devnet.TokenName, EIP712Version: devnet.TokenVersion},
	devnet.ChainID)

// lying is a payment on a token that reports success and does nothing, until its time is over.
var lying = scene{name: "the token lies and the payment lapses", play: func(t testing.TB, s *stage) {
	if err := s.Chain.SetLie(t.Context(), devnet.Silent); err != nil {
		t.Fatal(err)
	}
	s.send(t.Context())
	s.Lapse(t, s.paid.ValidBefore, 2)
}, mend: func(t testing.TB, s *stage) {
	if err := s.Chain.SetLie(t.Context(), devnet.Honest); err != nil {
		t.Fatal(err)
	}
}}

// stuck is a call whose node is silent before anything is shown, until its lease and its payment's time are over.
var stuck = scene{name: "the node is silent and the payment lapses", play: func(t testing.TB, s *stage) {
	s.node.hold("eth_maxPriorityFeePerGas")
	go s.send(t.Context())
	s.becomes(t, call.Settling)
	s.Lapse(t, s.paid.ValidBefore, 2)
	s.Shift(t, leases)
}, mend: func(_ testing.TB, s *stage) { s.node.heal() }}

// blocked is a payer that gets onto the blocklist between simulation and mining. then happens once the caller was told no.
func blocked(name string, then func(t testing.TB, s *stage)) scene {
	return scene{name: name, play: func(t testing.TB, s *stage) {
		s.node.before("eth_sendRawTransaction", func() { s.block(t, true) })
		got := s.send(t.Context())
		if then == nil {
			return
		}
		if got.code != string(call.SettleRejected) {
			t.Fatalf("a payment that was mined and undone: %+v", got)
		}
		s.block(t, false)
		then(t, s)
	}, mend: func(t testing.TB, s *stage) {
		if then == nil {
			s.block(t, false)
		}
	}}
}

var (
	refusedByToken = blocked("the payer gets blocked on the way", nil)
	// late is one that was told no and whose money moves all the same.
	late = blocked("a refused payment moves later", func(t testing.TB, s *stage) { s.Relay(t, s.paid) })
	// over is one that was told no and whose time is over.
	over = blocked("a refused payment lapses", func(t testing.TB, s *stage) { s.Lapse(t, s.paid.ValidBefore, 2) })
)
