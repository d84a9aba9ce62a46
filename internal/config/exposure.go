package config

import "github.com/shopspring/decimal"

// exposureMax keeps a slip of the finger from being a licence to lose everything. exposureMin is a micro-dollar: nothing is counted in less.
var (
	exposureMax = decimal.NewFromInt(1_000_000)
	exposureMin = decimal.New(1, -6)
)

// An Exposure is what the operator is willing to lose on each network, and how fast this process may come to it. It is zero where that was not said, which is
// possible in development alone.
type Exposure struct {
	Budget decimal.Decimal // US dollars that all processes together may send to settlement since it was last proved that payments work (b)
	Rate   decimal.Decimal // US dollars a second that this process may send (r)
	Burst  decimal.Decimal // US dollars at once (c)
	Share  int             // of the budget, in 1/10000, that is this process's own; zero: none
}

// Exposure is what the variables say together. Where only the budget is given, a tenth of it may be sent a second, or of the process's share of it.
func (c Config) Exposure() Exposure {
	if c.ExposureUSD.IsZero() {
		return Exposure{}
	}
	e := Exposure{Budget: c.ExposureUSD.Decimal, Rate: c.AdmitRate.Decimal, Burst: c.AdmitBurst.Decimal, Share: int(c.ExposureShare)}
	if e.Rate.IsZero() {
		own := e.Budget
		if e.Share > 0 {
			own = own.Mul(decimal.New(int64(e.Share), -4))
		}
		e.Rate = decimal.Max(exposureMin, own.Shift(-1))
	}
	if e.Burst.IsZero() {
		e.Burst = e.Rate
	}
	return e
}

// checkExposure wants a bound outside development, and wherever services are asked on somebody's word: nobody else can say what the operator is willing to
// lose.
func (p *problems) checkExposure(c *Config) {
	const (
		budget, share = "MARKET_EXPOSURE_USD", "MARKET_EXPOSURE_SHARE"
		rate, burst   = "MARKET_ADMIT_USD_PER_SECOND", "MARKET_ADMIT_BURST_USD"
	)
	if _, set := p.values[budget]; !set {
		switch {
		case c.trusts():
			p.say(budget, "missing: a facilitator has proof later, so say what may be unproved at once on each network, which you may lose")
		case !c.Dev:
			p.say(budget, "missing: say what may be sent to settlement on each network before it is noticed that payments do not work there, which you may lose")
		}
		for _, name := range []string{share, rate, burst} {
			if _, set := p.values[name]; set {
				p.say(name, "set without %s, of which it is a part", budget)
			}
		}
		return
	}
	p.check(budget, c.ExposureUSD.GreaterThanOrEqual(exposureMin) && c.ExposureUSD.LessThanOrEqual(exposureMax))
	if !p.ok(budget) {
		return
	}
	if _, set := p.values[rate]; set {
		p.check(rate, c.AdmitRate.GreaterThanOrEqual(exposureMin) && c.AdmitRate.LessThanOrEqual(c.ExposureUSD.Decimal))
	}
	if _, set := p.values[burst]; set {
		p.check(burst, c.AdmitBurst.GreaterThanOrEqual(exposureMin) && c.AdmitBurst.LessThanOrEqual(c.Exposure().Rate))
	}
}
