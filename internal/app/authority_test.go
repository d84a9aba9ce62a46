package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"market/internal/chain"
	"market/internal/readiness"
)

// A definite no is one whatever else was unclear, and who reads it is told what is definite alone.
func TestConclude_ADefiniteNoIsOneWhateverElseWasUnclear(t *testing.T) {
	t.Parallel()
	slow, no := context.DeadlineExceeded, readiness.Deny("the token is paused")
	for name, tt := range map[string]struct {
		errs            []error
		fails, definite bool
	}{
		"nothing":             {nil, false, false},
		"all is well":         {[]error{nil, nil}, false, false},
		"unclear":             {[]error{nil, slow}, true, false},
		"a no":                {[]error{no, nil}, true, true},
		"a no and unclear":    {[]error{slow, no}, true, true},
		"a no inside another": {[]error{errors.Join(nil, no)}, true, true},
	} {
		err := conclude(tt.errs...)
		denied, definite := errors.AsType[*readiness.Denied](err)
		if (err != nil) != tt.fails || definite != tt.definite {
			t.Errorf("%s: %v, definite %v", name, err, definite)
		}
		if definite && strings.Contains(denied.Error(), slow.Error()) {
			t.Errorf("%s: %v also says what is not definite", name, denied)
		}
	}
}

func TestOfChain_OnlyANoOfTheChainItselfIsDefinite(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err      error
		definite bool
	}{
		"another chain":            {&chain.ChainError{Network: "eip155:1", Got: 2, Want: 1}, true},
		"a head that is too old":   {&chain.StaleError{Network: "eip155:1"}, true},
		"no answer":                {&chain.Trouble{Method: "batch", Err: context.DeadlineExceeded}, false},
		"one node of two has lied": {&chain.Trouble{Method: "batch", Err: &chain.ChainError{Network: "eip155:1"}}, false},
	} {
		_, definite := errors.AsType[*readiness.Denied](ofChain(tt.err, chain.Denies(tt.err)))
		if definite != tt.definite {
			t.Errorf("%s: definite %v, want %v", name, definite, tt.definite)
		}
	}
}
