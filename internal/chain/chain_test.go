package chain

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/devnet"
	"market/internal/money"
)

func TestNode_CheckAsset_NamesWhatDiffers(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	change := func(f func(*Asset)) Asset { a := g.asset; f(&a); return a }
	tests := map[string]struct {
		asset Asset
		field string // empty: nothing
		says  string
	}{
		"as it is":                {g.asset, "", ""},
		"the name of mainnet":     {change(func(a *Asset) { a.EIP712Name = "USD Coin" }), "eip712_name", "USDC"},
		"version 1":               {change(func(a *Asset) { a.EIP712Version = "1" }), "eip712_version", "2"},
		"18 decimals":             {change(func(a *Asset) { a.Decimals = 18 }), "decimals", "6"},
		"an address without code": {change(func(a *Asset) { a.Address[0] ^= 1 }), "code", ""},
	}
	for name, tt := range tests {
		err := g.node.CheckAsset(t.Context(), tt.asset)
		if tt.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var differs *AssetError
		if !errors.As(err, &differs) || differs.Field != tt.field || differs.Contract != tt.says {
			t.Errorf("%s: %v, want field %s to be %q", name, err, tt.field, tt.says)
		}
	}
	// The same contract on a network that is configured with another chain id signs for nobody.
	elsewhere := &Node{network: g.node.network, endpoints: g.node.endpoints, current: g.node.endpoints[0], now: g.node.now}
	elsewhere.network.ChainID = 8453
	var differs *AssetError
	if err := elsewhere.CheckAsset(t.Context(), g.asset); !errors.As(err, &differs) || differs.Field != "DOMAIN_SEPARATOR" {
		t.Errorf("another chain id: %v, want field DOMAIN_SEPARATOR", err)
	}
}

func TestNode_Account_TellsWhatDecidesAPayment(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.authorize(t, 100, nil)
	read := func(owner common.Address, nonce common.Hash) AccountState {
		t.Helper()
		got, err := g.node.Account(t.Context(), g.asset.Address, owner, nonce)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := read(s.From, s.Nonce); got.Balance.Cmp(money.FromUnits(funds)) != 0 || got.NonceUsed || got.HasCode {
		t.Errorf("before: %+v", got)
	}
	g.pay(t, s)
	if got := read(s.From, s.Nonce); got.Balance.Cmp(money.FromUnits(funds-100)) != 0 || !got.NonceUsed || got.HasCode {
		t.Errorf("after: %+v", got)
	}
	if got := read(g.asset.Address, s.Nonce); !got.HasCode || got.NonceUsed || !got.Balance.IsZero() {
		t.Errorf("a contract: %+v", got)
	}
}

func TestNode_Simulate_TellsWhyItWouldFail(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	head, err := g.node.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	used := g.authorize(t, 1, nil)
	g.pay(t, used)
	forged := g.authorize(t, 1, nil)
	forged.Value = money.FromUnits(2)
	tests := map[string]struct {
		s    Signed
		want RevertKind // 0: it would not
	}{
		"a good one":      {g.authorize(t, funds-1, nil), 0},
		"one unit more":   {g.authorize(t, funds, nil), RevertInsufficient},
		"used":            {used, RevertNonceUsed},
		"expired":         {g.authorize(t, 1, func(a *Authorization) { a.ValidBefore = head.Time }), RevertExpired},
		"not yet valid":   {g.authorize(t, 1, func(a *Authorization) { a.ValidAfter = head.Time + 500 }), RevertNotYetValid},
		"another content": {forged, RevertBadSignature},
	}
	for name, tt := range tests {
		checkSimulation(t, g, name, tt.s, tt.want)
	}
	good := g.authorize(t, 1, nil)
	if err := g.SetPaused(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	checkSimulation(t, g, "paused", good, RevertPaused)
	if s := standing(t, g, g.payer.Address()); !s.Paused || s.Blocked {
		t.Errorf("the standing of a paused token is %+v", s)
	}
	if err := errors.Join(g.SetPaused(t.Context(), false), g.SetBlocked(t.Context(), g.payer.Address(), true)); err != nil {
		t.Fatal(err)
	}
	checkSimulation(t, g, "blocked", good, RevertBlocked)
	if s := standing(t, g, g.payer.Address()); s.Paused || !s.Blocked || s.Holds.IsZero() {
		t.Errorf("the standing of a blocked account is %+v", s)
	}
	if s := standing(t, g, g.payee.Address()); s.Blocked {
		t.Errorf("the standing of an account that is not blocked is %+v", s)
	}
	if have, err := g.node.HaveCode(t.Context(), []common.Address{g.payer.Address(), g.asset.Address}); err != nil || have[0] || !have[1] {
		t.Errorf("code of a key and of the token: %v, %v", have, err)
	}
	for account, want := range map[common.Address]bool{g.payer.Address(): true, g.payee.Address(): false} {
		blocked, known, err := g.node.Blocked(t.Context(), g.asset.Address, account)
		if err != nil || !known || blocked != want {
			t.Errorf("Blocked = %v, %v, %v, want %v", blocked, known, err, want)
		}
	}
}

func standing(t *testing.T, g *ground, account common.Address) AssetStanding {
	t.Helper()
	s, err := g.node.Standing(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	return s.Assets[0]
}

func checkSimulation(t *testing.T, g *ground, name string, s Signed, want RevertKind) {
	t.Helper()
	err := g.node.Simulate(t.Context(), g.gas.Address(), 250_000, s)
	if want == 0 {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	var revert *Revert
	if !errors.As(err, &revert) || revert.Kind != want {
		t.Errorf("%s: %v, want kind %d", name, err, want)
	}
}

func TestNode_FindsATransferWhoeverSentIt(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.authorize(t, 100, nil)
	start, err := g.node.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, found, err := g.node.FindSettlement(t.Context(), s.Expect(), 0); err != nil || found {
		t.Fatalf("before: %+v, %v, %v", got, found, err)
	}
	r := g.pay(t, s)
	proof, found, err := g.node.FindSettlement(t.Context(), s.Expect(), start.Number)
	if err != nil || !found || proof.Transaction != r.Transaction || proof.BlockHash != r.BlockHash || proof.BlockNumber != r.BlockNumber {
		t.Fatalf("after: %+v, %v, %v, want it in %s", proof, found, err, r.Transaction)
	}
	if err := g.Mine(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	located, depth, found, err := g.node.Locate(t.Context(), s.Expect(), r.Transaction)
	if err != nil || !found || located != proof || depth < 4 {
		t.Errorf("Locate = %+v at depth %d, %v, %v, want %+v at 4 or more", located, depth, found, err, proof)
	}
	if _, found, err := g.node.FindSettlement(t.Context(), s.Expect(), r.BlockNumber+1); err != nil || found {
		t.Errorf("from a later block on: found %v, %v", found, err)
	}
	for name, change := range map[string]func(*Expect){
		"another value":     func(e *Expect) { e.Value = money.FromUnits(101) },
		"another recipient": func(e *Expect) { e.To = g.gas.Address() },
		"another nonce":     func(e *Expect) { e.Nonce[0] ^= 1 },
	} {
		want := s.Expect()
		change(&want)
		if _, found, err := g.node.FindSettlement(t.Context(), want, start.Number); err != nil || found {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
		if _, _, found, err := g.node.Locate(t.Context(), want, r.Transaction); err != nil || found {
			t.Errorf("%s: located %v, %v", name, found, err)
		}
	}
}

func TestNode_Locate_BelievesNoLyingToken(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for name, lie := range map[string]devnet.Lie{"silent": devnet.Silent, "used only": devnet.UsedOnly} {
		if err := g.SetLie(t.Context(), lie); err != nil {
			t.Fatal(err)
		}
		s := g.authorize(t, 100, nil)
		r := g.pay(t, s)
		if r.Reverted {
			t.Fatalf("%s: the lie reverted", name)
		}
		if p, _, found, err := g.node.Locate(t.Context(), s.Expect(), r.Transaction); err != nil || found {
			t.Errorf("%s: Locate = %+v, %v, %v", name, p, found, err)
		}
		if p, found, err := g.node.FindSettlement(t.Context(), s.Expect(), 0); err != nil || found {
			t.Errorf("%s: FindSettlement = %+v, %v, %v", name, p, found, err)
		}
	}
}

func TestNode_LapsedAt_NeedsABlockOfThatTimeAtThatDepth(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	if err := g.Mine(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	g.Pause()
	head, err := g.node.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	third, err := g.Chain.Head(t.Context())
	if err != nil || third.Time != head.Time {
		t.Fatalf("head time %d and %d, %v", third.Time, head.Time, err)
	}
	nonce := common.Hash{7}
	at := func(validBefore uint64, depth int) bool {
		t.Helper()
		lapsed, err := g.node.LapsedAt(t.Context(), g.asset.Address, g.payer.Address(), nonce, validBefore, depth)
		if err != nil {
			t.Fatal(err)
		}
		return lapsed
	}
	for name, tt := range map[string]struct {
		validBefore uint64
		depth       int
		want        bool
	}{
		"a second before the head":              {head.Time - 1, 1, true},
		"at the head":                           {head.Time, 1, true},
		"a second after the head":               {head.Time + 1, 1, false},
		"at the head, which is not deep enough": {head.Time, 2, false},
		"before the first block":                {0, int(head.Number) + 1, true},
		"deeper than the chain":                 {0, int(head.Number) + 2, false},
		"no depth":                              {0, 0, false},
	} {
		if got := at(tt.validBefore, tt.depth); got != tt.want {
			t.Errorf("%s: lapsed = %v, want %v", name, got, tt.want)
		}
	}
}

func TestNode_LapsedAt_AUsedNonceNeverLapses(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.authorize(t, 1, nil)
	g.pay(t, s)
	used, err := g.node.AuthorizationUsed(t.Context(), s.Asset, s.From, s.Nonce)
	if err != nil || !used {
		t.Errorf("AuthorizationUsed = %v, %v", used, err)
	}
	lapsed, err := g.node.LapsedAt(t.Context(), s.Asset, s.From, s.Nonce, 1, 1)
	if err != nil || lapsed {
		t.Errorf("LapsedAt = %v, %v", lapsed, err)
	}
}

func TestSentAs_KnowsWhatTheNodeAnswersToASecondSend(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.Pause()
	raw, hash := g.transaction(t, g.authorize(t, 1, nil))
	for name, step := range map[string]Sent{"first": SentAccepted, "second": SentAccepted} {
		if err := g.node.Send(t.Context(), raw); SentAs(err) != step {
			t.Errorf("%s send: %v, want %d", name, err, step)
		}
	}
	g.Resume()
	r := g.mined(t, hash)
	if err := g.node.Send(t.Context(), raw); SentAs(err) != SentNonceUsed {
		t.Errorf("send of a mined transaction: %v, want %d", err, SentNonceUsed)
	}
	tip, err := g.node.Tip(t.Context(), g.gas.Address())
	if err != nil || tip.MinedNonce != 1 || tip.PendingNonce != 1 || tip.BaseFee.Sign() <= 0 || tip.Balance.Sign() <= 0 || tip.Head.Number < r.BlockNumber {
		t.Errorf("Tip = %+v, %v", tip, err)
	}
	nonce, block, ok, err := g.node.MinedNonceAt(t.Context(), g.gas.Address(), 1)
	if err != nil || !ok || nonce != 1 || block < r.BlockNumber {
		t.Errorf("MinedNonceAt = %d at %d, %v, %v, want 1", nonce, block, ok, err)
	}
}

// B80: the answers to bytes that the node has already are no failures.
func TestSentAs_ClaimsNothingOfWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want Sent
	}{
		"accepted":            {nil, SentAccepted},
		"geth knows it":       {&Trouble{"", &answerError{-32000, "already known", nil}}, SentAccepted},
		"nethermind knows it": {&Trouble{"", &answerError{-32010, "AlreadyKnown", nil}}, SentAccepted},
		"it was mined":        {&Trouble{"", &answerError{-32000, "nonce too low: next nonce 5, tx nonce 4", nil}}, SentNonceUsed},
		"the pool is full":    {&Trouble{"", &answerError{-32000, "txpool is full", nil}}, SentUnclear},
		"too cheap":           {&Trouble{"", &answerError{-32000, "replacement transaction underpriced", nil}}, SentUnclear},
		"no funds":            {&Trouble{"", &answerError{-32000, "insufficient funds for gas * price + value", nil}}, SentUnclear},
		"the line broke":      {&Trouble{"", errors.New("EOF")}, SentUnclear},
		"the line says a lie": {errors.New("already known"), SentUnclear},
	} {
		if got := SentAs(tt.err); got != tt.want {
			t.Errorf("%s: SentAs = %d, want %d", name, got, tt.want)
		}
	}
}
