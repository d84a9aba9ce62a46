package answer

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

const name = "pay_0123456789abcdef"

var (
	payer = common.HexToAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8")
	home  = netip.MustParseAddr("192.0.2.1")
	away  = netip.MustParseAddr("198.51.100.9")

	facts = Facts{Payer: payer, Identifier: name, Source: home, Age: time.Minute}
)

func TestProve_OneOfThreeThingsProvesTheCaller(t *testing.T) {
	t.Parallel()
	with := func(change func(*Facts)) Facts { f := facts; change(&f); return f }
	tests := map[string]struct {
		facts  Facts
		asking Asking
		want   Proof
	}{
		"nothing is shown":                        {facts, Asking{}, Unproved},
		"the name of the payment":                 {facts, Asking{Identifier: name, Source: away}, ByIdentifier},
		"another name":                            {facts, Asking{Identifier: name + "0", Source: away}, Unproved},
		"the beginning of the name":               {facts, Asking{Identifier: name[:16], Source: away}, Unproved},
		"a name in other cases":                   {facts, Asking{Identifier: "PAY_0123456789abcdef", Source: away}, Unproved},
		"a name for a payment without one":        {with(func(f *Facts) { f.Identifier = "" }), Asking{Identifier: name, Source: away}, Unproved},
		"no name for a payment without one":       {with(func(f *Facts) { f.Identifier = "" }), Asking{Source: away}, Unproved},
		"the payer signed in":                     {facts, Asking{SignedIn: payer, Source: away}, BySignIn},
		"somebody else signed in":                 {facts, Asking{SignedIn: common.HexToAddress("0x01"), Source: away}, Unproved},
		"nobody signed in, and there is no payer": {with(func(f *Facts) { f.Payer = common.Address{} }), Asking{Source: away}, Unproved},
		"the same address":                        {facts, Asking{Source: home}, BySource},
		"the same address, written for IPv6":      {facts, Asking{Source: netip.MustParseAddr("::ffff:192.0.2.1")}, BySource},
		"the same address, kept for IPv6":         {with(func(f *Facts) { f.Source = netip.MustParseAddr("::ffff:192.0.2.1") }), Asking{Source: home}, BySource},
		"another address":                         {facts, Asking{Source: away}, Unproved},
		"no address, of a call that has none":     {with(func(f *Facts) { f.Source = netip.Addr{} }), Asking{}, Unproved},
		"a neighbour in the zone":                 {with(func(f *Facts) { f.Source = netip.MustParseAddr("fe80::1%a") }), Asking{Source: netip.MustParseAddr("fe80::1%b")}, Unproved},
		"another name, from the same address":     {facts, Asking{Identifier: name + "0", Source: home}, BySource},
		"all three":                               {facts, Asking{Identifier: name, SignedIn: payer, Source: home}, BySignIn},
		"the name, long after":                    {with(func(f *Facts) { f.Age = 23 * time.Hour }), Asking{Identifier: name, Source: home}, ByIdentifier},
		"the payer, long after":                   {with(func(f *Facts) { f.Age = 23 * time.Hour }), Asking{SignedIn: payer, Source: home}, BySignIn},
	}
	for title, test := range tests {
		got := Prove(test.facts, test.asking)
		if got != test.want || got.Redeems() != (test.want != Unproved) {
			t.Errorf("%s: %s (redeems: %v), want %s", title, got, got.Redeems(), test.want)
		}
	}
}

func TestProve_TheSourceProvesForTenMinutes(t *testing.T) {
	t.Parallel()
	for offset, want := range map[time.Duration]Proof{
		-time.Microsecond: BySource, // just before
		0:                 BySource, // on it
		time.Microsecond:  Unproved, // just after
	} {
		f := facts
		f.Age = 10*time.Minute + offset
		if got := Prove(f, Asking{Source: home}); got != want {
			t.Errorf("%v from ten minutes: %s, want %s", offset, got, want)
		}
	}
}

func TestProof_TheZeroValueRedeemsNothing(t *testing.T) {
	t.Parallel()
	if p := Proof(0); p.Redeems() || p.String() != "invalid proof" {
		t.Errorf("zero = %s, redeems %v", p, p.Redeems())
	}
}
