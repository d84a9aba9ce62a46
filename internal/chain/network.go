package chain

import (
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/shopspring/decimal"

	"market/internal/money"
)

// A Network is one entry of the networks file.
type Network struct {
	ID            string // CAIP-2, "eip155:84532"
	ChainID       uint64
	V1Name        string // the name that x402 v1 clients know; empty where they know none
	RPC           []string
	Confirmations int // blocks from which a transfer is final; the head counts as 1
	ServeAtDepth  int // blocks from which a settlement counts as proved
	Explorer      string
	FloorUSD      decimal.Decimal // the lowest price that may be asked
	Assets        []Asset
}

// Asset returns the configured asset at an address.
func (n Network) Asset(address common.Address) (Asset, bool) {
	for _, a := range n.Assets {
		if a.Address == address {
			return a, true
		}
	}
	return Asset{}, false
}

// Named says whether a name is one of this network's: its CAIP-2 id, or the one that x402 v1 clients know.
func (n Network) Named(name string) bool {
	return n.ID == name || n.V1Name != "" && strings.EqualFold(n.V1Name, name)
}

// An Asset is an EIP-3009 token that we accept.
type Asset struct {
	Address       common.Address
	Symbol        string
	Decimals      int
	EIP712Name    string // the token's own domain, which differs between chains ("USDC", "USD Coin")
	EIP712Version string
}

// Sum is a sum of it for people.
func (a Asset) Sum(m money.Amount) string { return m.USD(a.Decimals).String() + " " + a.Symbol }

func (n Network) chainID() *big.Int { return new(big.Int).SetUint64(n.ChainID) }
