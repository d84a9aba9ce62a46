package identity

// Limits that tests count to.
const (
	SignInsMax   = signInsMax
	SessionsMax  = sessionsMax
	AddressesMax = addressesMax
)
