package facilitator

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

// Options say within which bounds an Engine works. Only Treasuries and Recipients have no default; one of the two is needed.
type Options struct {
	// Treasuries are our own addresses. Settle moves money to or from them only.
	Treasuries []common.Address
	// Recipients says to whom an engine that works for others may move money. Who asks for it is judged before; this is the last word.
	Recipients func(to common.Address) bool
	// GasLimit is what a settlement may use; it is simulated with the same. See chain.SettleGas, which it is by default.
	GasLimit uint64
	// FeeCeiling is the most wei that is paid per gas.
	FeeCeiling *big.Int
	// ReadySettlements is how many transactions the gas balance has to cover at the present fee for Ready: by default those of 100 calls, each of which may be
	// settled and refunded.
	ReadySettlements int
	// WaitMax bounds a Settle whose context ends later or never.
	WaitMax time.Duration
	// StuckAfter is the age from which a transaction that is not mined makes the engine not ready.
	StuckAfter time.Duration
	// LookBack is in how many of the newest blocks the transfer of a used nonce is looked for.
	LookBack uint64
	// SweepEvery is the pause between two rounds of Run.
	SweepEvery time.Duration
	// ResendAfter is the age from which Run sends an unmined transaction again; younger ones are in the hands of Settle.
	ResendAfter time.Duration
	// Report is told what a round of Run could not do. Nil drops it.
	Report func(error)
}

// readyCalls is how many calls the gas has to be there for.
const readyCalls = 100

const gasLimitMax = 300_000 // above it the asset is not what we think it is

func (o Options) withDefaults() Options {
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.WaitMax, 2*time.Minute)
	def(&o.StuckAfter, 2*time.Minute)
	def(&o.SweepEvery, 2*time.Second)
	def(&o.ResendAfter, 3*time.Second)
	if o.GasLimit == 0 {
		o.GasLimit = chain.SettleGas
	}
	if o.FeeCeiling == nil {
		o.FeeCeiling = big.NewInt(500e9)
	}
	if o.ReadySettlements == 0 {
		o.ReadySettlements = 2 * readyCalls
	}
	if o.LookBack == 0 {
		// An hour of blocks of two seconds: several times the life of any authorization that is accepted.
		o.LookBack = 1_800
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	return o
}

func (o Options) check(gas chain.Key) error {
	var errs []error
	if gas.Address() == (common.Address{}) {
		errs = append(errs, errors.New("no gas key"))
	}
	if len(o.Treasuries) == 0 && o.Recipients == nil {
		errs = append(errs, errors.New("no treasury to move money to or from"))
	}
	if len(o.Treasuries) > 0 && o.Recipients != nil {
		errs = append(errs, errors.New("an engine that works for others has no treasury: its gas key would be the treasury's, too"))
	}
	if slices.Contains(o.Treasuries, gas.Address()) {
		errs = append(errs, fmt.Errorf("the gas key %s is a treasury: a key that pays gas may hold nothing else", gas.Address()))
	}
	if o.GasLimit < 21_000 || o.GasLimit > gasLimitMax {
		errs = append(errs, fmt.Errorf("gas limit is %d, want 21000 to %d", o.GasLimit, gasLimitMax))
	}
	if o.FeeCeiling.Sign() <= 0 {
		errs = append(errs, fmt.Errorf("fee ceiling is %s, want at least 1 wei", o.FeeCeiling))
	}
	if o.ReadySettlements < 1 || o.WaitMax < 0 || o.StuckAfter < 0 || o.SweepEvery < 0 || o.ResendAfter < 0 {
		errs = append(errs, errors.New("a bound is negative"))
	}
	return errors.Join(errs...)
}
