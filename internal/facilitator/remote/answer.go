package remote

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/wire"
)

// answerMax is what is read of one answer; real ones have a few hundred bytes, and /supported of a busy one a few thousand.
const answerMax = 64 << 10

// A Kind is what became of a request to settle, as far as the answer to it goes.
type Kind int

const (
	_        Kind = iota
	Paid          // it says that it has paid, by a transaction that it names
	Pending       // it says that it has sent a transaction that it names, and has not seen it mined
	Declined      // it says that this authorization does not pay
	Unsent        // nothing of the authorization has left us
	Refused       // it has seen the authorization, and turned our request down without a word about it
	Unclear       // it may or may not have done anything
)

// An Answer is the facilitator's word on one authorization.
type Answer struct {
	Kind Kind
	// Transaction is the one that it names; zero where it names none. It can be there whatever the kind is.
	Transaction common.Hash
	Code        string // x402's, where it declined; empty where it gave none that looks like a code
	Blame       Blame  // of that code
	Err         error  // a *Trouble, or a *DeclinedError; nil where it paid
}

// A DeclinedError is a decided no, before anybody has checked it.
type DeclinedError struct {
	Facilitator string
	Code        string
}

func (e *DeclinedError) Error() string {
	code := e.Code
	if code == "" {
		code = "no code"
	}
	return "facilitator " + e.Facilitator + " declined: " + code
}

// expected is what an answer has to be about.
type expected struct {
	networks []string // our network's names, of both versions
	payer    common.Address
}

// A settleBody is a SettleResponse with the types that its members have to have.
type settleBody struct {
	success                             bool
	transaction, network, payer, reason string
}

func readSettleBody(body []byte) (settleBody, Fault) {
	root, err := wire.ParseObject(body)
	if err != nil {
		return settleBody{}, faultOf(err)
	}
	success := root.Members["success"]
	b := settleBody{success: success.Text == "true"}
	good := success.Kind == wire.Bool
	for name, into := range map[string]*string{
		"transaction": &b.transaction, "network": &b.network, "payer": &b.payer, "errorReason": &b.reason,
	} {
		good = optionalText(root, name, into) && good
	}
	if !good {
		return settleBody{}, BadShape
	}
	return b, 0
}

// optionalText reads a member that may be missing or null. False: it is something else than a string.
func optionalText(v wire.Value, name string, into *string) bool {
	if !v.Given(name) {
		return true
	}
	*into = v.Members[name].Text
	return v.Members[name].Kind == wire.String
}

func faultOf(err error) Fault {
	switch err { //nolint:errorlint // the parser returns its own, bare
	case wire.ErrNotObject, wire.ErrDuplicateKey, wire.ErrTooDeep:
		return BadShape
	}
	return NotJSON
}

// settleAnswer classifies the answer to a request that was sent. Only a 2xx of the right shape about our payment is a yes.
func settleAnswer(status int, body []byte, want expected) (Answer, Fault) {
	b, fault := readSettleBody(body)
	readable := fault == 0
	named := common.Hash{}
	if readable {
		named = hashOf(b.transaction)
	}
	unclear := func(f Fault) (Answer, Fault) { return Answer{Kind: Unclear, Transaction: named}, f }
	switch {
	case status/100 == 2 && !readable:
		return unclear(fault)
	case status/100 == 2 && b.success:
		return paidAnswer(b, named, want)
	case status/100 == 2:
		return declinedAnswer(b, named)
	case status/100 == 3:
		return unclear(Redirected)
	case status == http.StatusUnauthorized:
		return Answer{Kind: Refused}, Unauthorized
	case status == http.StatusPaymentRequired && !readable: // with a body it is a no to this payment, in the words of some
		return Answer{Kind: Refused}, Unpaid
	case status == http.StatusTooManyRequests:
		return Answer{Kind: Refused}, Throttled
	case readable && b.success:
		return unclear(Contradiction)
	case status/100 == 4 && readable:
		return declinedAnswer(b, named)
	case status/100 == 4:
		return Answer{Kind: Refused}, Turned
	case readable && b.reason == codePending && named != common.Hash{}:
		return declinedAnswer(b, named)
	}
	return unclear(Failing)
}

// paidAnswer holds a yes against what was asked. A transaction that it names is worth a look even where the rest is odd.
func paidAnswer(b settleBody, named common.Hash, want expected) (Answer, Fault) {
	fault := Fault(0)
	switch {
	case named == common.Hash{}:
		fault = NoTransaction
	case !want.isNetwork(b.network):
		fault = OtherNetwork
	case b.payer != "" && !want.isPayer(b.payer):
		fault = OtherPayer
	case b.reason != "":
		fault = Contradiction
	}
	if fault != 0 {
		return Answer{Kind: Unclear, Transaction: named}, fault
	}
	return Answer{Kind: Paid, Transaction: named}, 0
}

func declinedAnswer(b settleBody, named common.Hash) (Answer, Fault) {
	if b.reason == codePending {
		if named == (common.Hash{}) {
			return Answer{Kind: Unclear}, NoTransaction
		}
		return Answer{Kind: Pending, Transaction: named, Code: codePending}, 0
	}
	code := codeOf(b.reason)
	return Answer{Kind: Declined, Transaction: named, Code: code, Blame: blameOf(code)}, 0
}

func (w expected) isNetwork(name string) bool {
	for _, n := range w.networks {
		if n != "" && n == name {
			return true
		}
	}
	return false
}

var (
	hashForm    = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`)
	addressForm = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)
)

func (w expected) isPayer(text string) bool {
	return addressForm.MatchString(text) && common.HexToAddress(text) == w.payer
}

// hashOf returns a transaction's hash, zero for what is none.
func hashOf(text string) common.Hash {
	if !hashForm.MatchString(text) {
		return common.Hash{}
	}
	return common.HexToHash(strings.ToLower(text))
}
