package desk

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"market/internal/payment"
)

// supported is the body of /supported.
type supported struct {
	Kinds      []kind              `json:"kinds"`
	Extensions []string            `json:"extensions"`
	Signers    map[string][]string `json:"signers"` // addresses by CAIP-2 pattern
}

type kind struct {
	X402Version payment.Version `json:"x402Version"`
	Scheme      string          `json:"scheme"`
	Network     string          `json:"network"`
}

// supportedBy lists every network in version 2 and, where it has a name there, in version 1.
func supportedBy(rails []Rail, signer string) supported {
	s := supported{Kinds: []kind{}, Extensions: []string{}, Signers: map[string][]string{"eip155:*": {signer}}}
	for _, version := range []payment.Version{payment.V2, payment.V1} {
		for _, r := range rails {
			if name := version.NetworkName(r.Network); name != "" {
				s.Kinds = append(s.Kinds, kind{version, scheme, name})
			}
		}
	}
	return s
}

// listSupported needs no key: sellers' servers ask before they have sold anything.
func (d *Desk) listSupported(c echo.Context) error { return writeJSON(c, http.StatusOK, d.supported) }
