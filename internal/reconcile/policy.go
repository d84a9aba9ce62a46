package reconcile

import "time"

// A Kind is what is different. The empty string is none.
type Kind string

const (
	// Inflow is money that came and that no row of ours explains. Anybody can send some, so it closes nothing, or a stranger's dust would close the market:
	// it is booked to suspense, and stays named until a call claims it.
	Inflow Kind = "inflow"
	// Outflow is money that went, by no row of ours.
	Outflow Kind = "outflow"
	// Row is a row of ours that says that money moved for good, and the chain has no such log.
	Row Kind = "row"
	// Wallet is a wallet that holds something else than its opening and its logs come to.
	Wallet Kind = "wallet"
	// Ledger is that the books have moved something else than the rows that they are posted from.
	Ledger Kind = "ledger"
	// Liabilities is a wallet that holds less than it may have to give back.
	Liabilities Kind = "liabilities"
	// Reorganised is that the chain has replaced blocks that were final by the configured depth. It is over when it is written: the scan goes back.
	Reorganised Kind = "reorganised"
)

// Kinds returns every kind.
func Kinds() []Kind { return []Kind{Inflow, Outflow, Row, Wallet, Ledger, Liabilities, Reorganised} }

const (
	// bookAfter is how long an inflow may be without a row before it is booked to suspense.
	bookAfter = 5 * time.Minute
	// nameAfter is how long anything else may be different before it is called so, and closeAfter before nobody new is asked to pay on the network.
	nameAfter  = 2 * time.Minute
	closeAfter = 15 * time.Minute
	// looksMin is in how many looks in a row it has to be seen: a clock that is put forward makes everything old.
	looksMin = 3
)

// A Verdict is what follows from a suspicion.
type Verdict struct{ Book, Name, Close bool }

// Judge says what follows from a suspicion that has lasted so long and was seen in so many looks in a row.
func Judge(k Kind, lasted time.Duration, looks int) Verdict {
	switch k {
	case Liabilities:
		return Verdict{Name: true, Close: true}
	case Inflow:
		return Verdict{Book: lasted >= bookAfter && looks >= looksMin}
	case Outflow, Row, Wallet, Ledger:
		return Verdict{Name: lasted >= nameAfter && looks >= looksMin, Close: lasted >= closeAfter && looks >= looksMin}
	case Reorganised:
	}
	return Verdict{}
}
