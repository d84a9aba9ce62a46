package app

import (
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

// A block is never of the future, so who is behind it is wrong. Who is ahead of it is wrong where the database says so too: the chain may stand still. A
// development chain runs ahead of everybody, so there the database decides both.
func TestTimes_Lie_AtTheBound(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	const over = clockMax + time.Nanosecond
	for name, tt := range map[string]struct {
		own, database time.Duration // ahead of the newest block
		lies, inDev   bool
	}{
		"all agree":            {0, 0, false, false},
		"behind, just under":   {-clockMax + 1, 0, false, false},
		"behind, on the bound": {-clockMax, 0, false, false},
		"behind, just over":    {-over, 0, true, true},
		"behind, and the database on the bound to us":    {-over, -time.Nanosecond, true, false},
		"behind, and the database is not":                {-2 * over, 0, true, true},
		"behind, as the database is":                     {-2 * over, -2 * over, true, false},
		"behind, and the database agrees with nobody":    {-2 * over, 2 * over, true, false},
		"ahead, just under":                              {clockMax - 1, -time.Second, false, false},
		"ahead, on the bound":                            {clockMax, -time.Second, false, false},
		"ahead, just over, and the database is not":      {over, -time.Second, true, true},
		"ahead, and the database agrees with both":       {over, clockMax / 2, false, false},
		"ahead, and the database on the bound to us":     {over, time.Nanosecond, false, false},
		"ahead, and the database just over it to us":     {over + 1, time.Nanosecond, true, true},
		"ahead, and the database on the bound to them":   {3 * clockMax, clockMax, true, true},
		"ahead, and the database just over it to them":   {3 * clockMax, over, false, false},
		"ahead, as the database is: the chain stands":    {time.Hour, time.Hour, false, false},
		"a development chain that runs ahead of us both": {-30 * time.Second, -30 * time.Second, false, false},
	} {
		for _, dev := range []bool{false, true} {
			clocks := times{own: at.Add(tt.own), chain: at, database: at.Add(tt.database)}
			want := tt.lies
			if dev {
				want = tt.inDev
			}
			if err := clocks.lie("eip155:1", dev); (err != nil) != want {
				t.Errorf("%s, in development %v: %v, want a lie %v", name, dev, err, want)
			}
		}
	}
}

func TestTimes_Lie_IsOneSentenceThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for want, clocks := range map[string]times{
		"the clock of this machine says 2026-11-30 11:57:55 UTC, which is 2m5s behind the newest block of eip155:1, and the database's clock agrees with the chain: " +
			"set the clock of this machine (NTP) and start again": {own: at.Add(-125 * time.Second), chain: at, database: at},
		"the clock of this machine says 2026-11-30 12:10:00 UTC, which is 10m0s ahead of the newest block of eip155:1, and the database's clock agrees with the chain: " +
			"set the clock of this machine (NTP) and start again": {own: at.Add(10 * time.Minute), chain: at, database: at},
		"the clock of this machine says 2026-11-30 11:50:00 UTC, which is 10m0s behind the newest block of eip155:1, and the database's clock says 2026-11-30 11:50:00 UTC: " +
			"set the clock of this machine (NTP) and start again": {own: at.Add(-10 * time.Minute), chain: at, database: at.Add(-10 * time.Minute)},
	} {
		if err := clocks.lie("eip155:1", false); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestWalletLies_NoWalletIsAnythingElse(t *testing.T) {
	t.Parallel()
	treasury, retired, gas, usdc := common.Address{1}, common.Address{2}, common.Address{3}, common.Address{4}
	networks := []chain.Network{{ID: "eip155:1", Assets: []chain.Asset{{Address: usdc, Symbol: "USDC"}}}}
	of := func(treasury, retired, gas common.Address) []wallet {
		return []wallet{{name: treasuryName, address: treasury}, {name: retiredName, address: retired, retired: true}, {name: gasName, address: gas, sends: true}}
	}
	for name, tt := range map[string]struct {
		wallets []wallet
		says    []string // one each
	}{
		"all differ":                {of(treasury, retired, gas), nil},
		"an old treasury is in use": {of(treasury, treasury, gas), nil},
		"gas is the treasury":       {of(treasury, retired, treasury), []string{"MARKET_GAS is the key of a treasury (MARKET_TREASURY, 0x01"}},
		"gas is an old treasury":    {of(treasury, retired, retired), []string{"MARKET_GAS is the key of a treasury (MARKET_TREASURY_RETIRED, 0x02"}},
		"the treasury is the asset": {of(usdc, retired, gas), []string{"MARKET_TREASURY is the key of 0x04", "the asset USDC of eip155:1"}},
		"gas is both":               {of(usdc, retired, usdc), []string{"MARKET_GAS is the key of a treasury", "MARKET_GAS is the key of 0x04", "MARKET_TREASURY is the key of 0x04"}},
	} {
		err := walletLies(tt.wallets, networks)
		if (err != nil) != (len(tt.says) > 0) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range tt.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want it to say %q", name, err, part)
			}
		}
	}
}
