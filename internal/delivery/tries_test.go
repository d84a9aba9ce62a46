package delivery

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	sources "market/internal/source"
)

func TestTries_AreThoseOfTheLastTenMinutesAndTheOneUnderWay(t *testing.T) {
	t.Parallel()
	var (
		kept tries
		at   = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	)
	kept.add(at, Tries{Challenges: 3})
	kept.add(at.Add(59*time.Second), Tries{Challenges: 1, Settled: 1})
	for after, want := range map[time.Duration]int{
		0:                            4,
		TriesWindow + 59*time.Second: 4, // the minute that is under way beside ten whole ones
		TriesWindow + time.Minute:    0,
		TriesWindow + time.Hour:      0,
	} {
		if got := kept.of(at.Add(after)); got.Challenges != want {
			t.Errorf("%s later %d challenges count, want %d", after, got.Challenges, want)
		}
	}
	later := at.Add(TriesWindow + time.Minute) // the same place in the ring
	kept.add(later, Tries{Failed: 1})
	if got := kept.of(later); got.Challenges != 0 || got.Settled != 0 || got.Failed != 1 {
		t.Errorf("a minute that replaced an old one has %+v, want one that failed", got)
	}
}

func TestTries_RememberTwoPayersAtMost(t *testing.T) {
	t.Parallel()
	one, two, three := common.Address{1}, common.Address{2}, common.Address{3}
	for name, tt := range map[string]struct {
		payers []common.Address
		want   int
	}{
		"one that tries often": {[]common.Address{one, one, one}, 1},
		"two":                  {[]common.Address{one, two, one}, 2},
		"three":                {[]common.Address{one, two, three}, 2},
	} {
		var sum Tries
		for _, p := range tt.payers {
			sum = sum.Add(Tries{Failed: 1, Payers: []common.Address{p}})
		}
		if len(sum.Payers) != tt.want || sum.Failed != len(tt.payers) {
			t.Errorf("%s: %d payers of %d payments, want %d of %d", name, len(sum.Payers), sum.Failed, tt.want, len(tt.payers))
		}
	}
}

// A payer without money, or one that uses a nonce twice, can try as often as it likes: it makes no trouble of ours.
func TestTries_WhatThePayerIsAtFaultForIsNoTrouble(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		s      chain.Settlement
		onWord bool
		want   Tries
	}{
		"settled":                    {chain.Settlement{Status: chain.StatusSettled}, false, Tries{Settled: 1}},
		"settled on a word":          {chain.Settlement{Status: chain.StatusSaid}, true, Tries{Settled: 1}},
		"refused for the payer":      {chain.Settlement{Status: chain.StatusRejected, PayerFault: true}, false, Tries{}},
		"never shown, for the payer": {chain.Settlement{Status: chain.StatusReleased, PayerFault: true}, false, Tries{}},
		"never shown":                {chain.Settlement{Status: chain.StatusReleased}, false, Tries{Failed: 1}},
		"unclear":                    {chain.Settlement{Status: chain.StatusUnknown}, false, Tries{Failed: 1}},
		"no facilitator takes work":  {chain.Settlement{Status: chain.StatusUnknown, Err: errors.Join(&sources.LimitError{Source: "facilitator/x", Why: sources.Exhausted}, errors.New("x"))}, false, Tries{}},
		"it only asks for a moment":  {chain.Settlement{Status: chain.StatusUnknown, Err: errors.Join(&sources.LimitError{Source: "facilitator/x", Why: sources.Paced}, errors.New("x"))}, false, Tries{Failed: 1}},
		"refused for another reason": {chain.Settlement{Status: chain.StatusRejected}, false, Tries{Failed: 1}},
	} {
		p := &Path{Config: Config{Now: time.Now}}
		p.tried(common.Address{1}, tt.s, tt.onWord)
		if got := p.Tries(); got.Settled != tt.want.Settled || got.Failed != tt.want.Failed || len(got.Payers) != tt.want.Failed {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
