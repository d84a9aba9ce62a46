package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

// A Network is one chain that we take payments on.
type Network struct {
	ID            string          // CAIP-2, "eip155:84532"
	ChainID       uint64          // the number in ID
	V1Name        string          // the name that x402 v1 clients know; empty where they know none
	RPC           []RPC           // its nodes, in the order in which they are used
	Confirmations int             // blocks from which a transfer is final; the head counts as 1
	ServeAtDepth  int             // blocks from which a settlement counts as proved; at most Confirmations
	Explorer      string          // base URL of a block explorer; empty: none
	FloorUSD      decimal.Decimal // lowest price that may be asked
	Assets        []Asset
}

// An Asset is a token that we accept on a network.
type Asset struct {
	Address       string // 0x and 40 hex digits, in the file's spelling
	Symbol        string
	Decimals      int
	EIP712Name    string
	EIP712Version string
}

// Limits of the networks file.
const (
	networksMax      = 32
	assetsMax        = 32
	rpcMax           = 8
	confirmationsMax = 1000
	decimalsMax      = 36
)

type networksFile struct {
	Networks []networkEntry `json:"networks"`
}

type networkEntry struct {
	ID            string       `json:"id"`
	V1Name        string       `json:"v1_name"`
	RPC           []rpcEntry   `json:"rpc"`
	Confirmations int          `json:"confirmations"`
	ServeAtDepth  int          `json:"serve_at_depth"`
	Explorer      string       `json:"explorer"`
	FloorUSD      string       `json:"floor_usd"`
	Assets        []assetEntry `json:"assets"`
}

type assetEntry struct {
	Address       string `json:"address"`
	Symbol        string `json:"symbol"`
	Decimals      *int   `json:"decimals"` // a forgotten one is no token without decimals
	EIP712Name    string `json:"eip712_name"`
	EIP712Version string `json:"eip712_version"`
}

func readNetworks(path string) ([]Network, []error) {
	var file networksFile
	if err := readJSON(path, &file); err != nil {
		return nil, []error{err}
	}
	if n := len(file.Networks); n < 1 || n > networksMax {
		return nil, []error{fmt.Errorf("networks: got %d, expected 1 to %d", n, networksMax)}
	}
	r := report{}
	var networks []Network
	ids, names := map[string]bool{}, map[string]bool{}
	for i, entry := range file.Networks {
		r.at = fmt.Sprintf("networks[%d]", i)
		networks = append(networks, r.network(entry))
		r.check("id", !ids[entry.ID], entry.ID, "an id that is not taken")
		r.check("v1_name", entry.V1Name == "" || !names[entry.V1Name], entry.V1Name, "a name that is not taken")
		ids[entry.ID], names[entry.V1Name] = true, true
	}
	return networks, r.errs
}

var (
	idForm      = regexp.MustCompile(`^eip155:([1-9][0-9]{0,18})$`)
	v1NameForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	usdForm     = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})(\.[0-9]{1,18})?$`)
	addressForm = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)
	symbolForm  = regexp.MustCompile(`^[A-Za-z0-9.]{1,16}$`)
	domainForm  = regexp.MustCompile(`^[ -~]{1,64}$`)
)

// A report collects errors with the place in the file.
type report struct {
	at   string
	errs []error
}

func (r *report) check(member string, good bool, got any, expected string) {
	if !good {
		r.errs = append(r.errs, fmt.Errorf("%s.%s: got %s, expected %s", r.at, member, shorten(fmt.Sprintf("%#v", got)), expected))
	}
}

func (r *report) network(e networkEntry) Network {
	n := Network{ID: e.ID, V1Name: e.V1Name, RPC: r.rpc(e.RPC), Confirmations: e.Confirmations, ServeAtDepth: e.ServeAtDepth, Explorer: e.Explorer}
	id := idForm.FindStringSubmatch(e.ID)
	r.check("id", id != nil, e.ID, "eip155:<chain id>")
	if id != nil {
		n.ChainID, _ = strconv.ParseUint(id[1], 10, 64) // 19 digits fit
	}
	r.check("v1_name", e.V1Name == "" || v1NameForm.MatchString(e.V1Name), e.V1Name, "lower-case letters, digits and dashes")
	r.check("confirmations", 1 <= e.Confirmations && e.Confirmations <= confirmationsMax, e.Confirmations, fmt.Sprintf("1 to %d", confirmationsMax))
	r.check("serve_at_depth", 1 <= e.ServeAtDepth && e.ServeAtDepth <= e.Confirmations, e.ServeAtDepth, "1 to confirmations")
	r.check("explorer", e.Explorer == "" || isWebURL(e.Explorer), e.Explorer, "an http(s) URL")
	r.check("rpc", 1 <= len(e.RPC) && len(e.RPC) <= rpcMax, len(e.RPC), fmt.Sprintf("1 to %d URLs", rpcMax))
	r.check("floor_usd", e.FloorUSD == "" || usdForm.MatchString(e.FloorUSD), e.FloorUSD, "US dollars such as 0.001")
	if usdForm.MatchString(e.FloorUSD) {
		n.FloorUSD = decimal.RequireFromString(e.FloorUSD)
	}
	r.check("assets", 1 <= len(e.Assets) && len(e.Assets) <= assetsMax, len(e.Assets), fmt.Sprintf("1 to %d", assetsMax))
	network, taken := r.at, map[string]bool{}
	for i, a := range e.Assets {
		r.at = fmt.Sprintf("%s.assets[%d]", network, i)
		n.Assets = append(n.Assets, r.asset(a))
		key := strings.ToLower(a.Address)
		r.check("address", !taken[key], a.Address, "an address that is not taken")
		taken[key] = true
	}
	r.at = network
	return n
}

func (r *report) asset(e assetEntry) Asset {
	a := Asset{Address: e.Address, Symbol: e.Symbol, EIP712Name: e.EIP712Name, EIP712Version: e.EIP712Version}
	r.check("address", addressForm.MatchString(e.Address), e.Address, "0x and 40 hex digits")
	r.check("symbol", symbolForm.MatchString(e.Symbol), e.Symbol, "1 to 16 letters and digits")
	r.check("eip712_name", domainForm.MatchString(e.EIP712Name), e.EIP712Name, "1 to 64 printable characters")
	r.check("eip712_version", domainForm.MatchString(e.EIP712Version), e.EIP712Version, "1 to 64 printable characters")
	if e.Decimals == nil {
		r.check("decimals", false, "nothing", fmt.Sprintf("0 to %d", decimalsMax))
		return a
	}
	a.Decimals = *e.Decimals
	r.check("decimals", 0 <= a.Decimals && a.Decimals <= decimalsMax, a.Decimals, fmt.Sprintf("0 to %d", decimalsMax))
	return a
}

func isWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && isWeb(u)
}
