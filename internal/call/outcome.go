package call

// An Outcome says how a call ended. What that does to a service is not its business: see strikes.EffectOf and cooldown.After.
type Outcome string

const (
	Served          Outcome = "served"           // the service answered as its listing promises
	Refused         Outcome = "refused"          // we or the service turned the request down; nothing was delivered
	Failed          Outcome = "failed"           // we tried and did not deliver
	CooldownRefused Outcome = "cooldown_refused" // we did not try: the service was cooling down
)

// Outcomes returns every outcome.
func Outcomes() []Outcome { return []Outcome{Served, Refused, Failed, CooldownRefused} }

// A Party is whose doing an outcome was.
type Party string

const (
	Service  Party = "service"
	Caller   Party = "caller"
	Platform Party = "platform" // us
	Rail     Party = "rail"     // facilitator, chain, RPC
)

// Parties returns every party.
func Parties() []Party { return []Party{Service, Caller, Platform, Rail} }

// An Origin is where a call's traffic comes from.
type Origin string

const (
	External     Origin = "external"
	Own          Origin = "own"          // our scanners and our own addresses
	Provider     Origin = "provider"     // the provider of the service itself
	Unattributed Origin = "unattributed" // forwarded headers from a peer that is not a configured proxy
)

// Origins returns every origin.
func Origins() []Origin { return []Origin{External, Own, Provider, Unattributed} }

// Counts says whether a delivery of this origin is evidence about a service. Own and provider traffic is measured and moves nothing.
func (o Origin) Counts() bool { return o == External || o == Unattributed }
