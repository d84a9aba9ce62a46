package remote

import (
	"net/http"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/wire"
)

// statusFault reads a status by itself; 0 for one beside which the body counts.
func statusFault(status int) Fault {
	switch {
	case status/100 == 2:
		return 0
	case status/100 == 3:
		return Redirected
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Unauthorized
	case status == http.StatusPaymentRequired:
		return Unpaid
	case status == http.StatusTooManyRequests:
		return Throttled
	case status/100 == 4:
		return Turned
	}
	return Failing
}

// verifyAnswer classifies the answer of /verify. Only a 2xx counts, as the specification has it.
func verifyAnswer(status int, body []byte, payer common.Address) (Verdict, Fault) {
	if fault := statusFault(status); fault != 0 {
		return Verdict{}, fault
	}
	root, err := wire.ParseObject(body)
	if err != nil {
		return Verdict{}, faultOf(err)
	}
	var reason, named string
	valid := root.Members["isValid"]
	if valid.Kind != wire.Bool || !optionalText(root, "invalidReason", &reason) || !optionalText(root, "payer", &named) {
		return Verdict{}, BadShape
	}
	v := Verdict{Valid: valid.Text == "true", Code: codeOf(reason), Payer: payer}
	switch {
	case v.Valid && reason != "":
		return Verdict{}, Contradiction
	case v.Valid && named != "" && !(expected{payer: payer}).isPayer(named):
		return Verdict{}, OtherPayer
	}
	return v, 0
}
