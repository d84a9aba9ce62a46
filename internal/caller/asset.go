package caller

import (
	"github.com/ethereum/go-ethereum/common"
)

// An Asset is a US dollar token that a Client pays in. Its decimals come from here and never from a server, which could make a large price
// look small.
type Asset struct {
	Network  string // CAIP-2
	Address  common.Address
	Symbol   string
	Decimals int
}

// known are the dollar tokens that stock x402 clients pay in.
var known = []Asset{
	usdc("eip155:8453", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
	usdc("eip155:84532", "0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
	usdc("eip155:1", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"),
	usdc("eip155:137", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"),
	usdc("eip155:43114", "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E"),
	usdc("eip155:42161", "0xaf88d065e77c8cC2239327C5EDb3A432268e5831"),
	usdc("eip155:421614", "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d"),
	usdc("eip155:1329", "0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392"),
	usdc("eip155:1328", "0x4fCF1784B31630811181f670Aea7A7bEF803eaED"),
	usdc("eip155:42220", "0xcebA9300f2b948710d2653dD7B07f33A8B32118C"),
	usdc("eip155:11142220", "0x01C5C0122039549AD1493B8220cABEdD739BC44E"),
	usdc("eip155:143", "0x754704Bc059F8C67012fEd69BC8A327a5aafb603"),
	usdc("eip155:50", "0xfA2958CB79b0491CC627c1557F441eF849Ca8eb1"),
	usdc("eip155:51", "0xb5AB69F7bBada22B28e79C8FFAECe55eF1c771D4"),
}

func usdc(network, address string) Asset {
	return Asset{Network: network, Address: common.HexToAddress(address), Symbol: "USDC", Decimals: 6}
}

// assetFor looks among the assets that the client was given, then among the known ones.
func (c *Client) assetFor(network string, address common.Address) (Asset, bool) {
	for _, list := range [][]Asset{c.Assets, known} {
		for _, a := range list {
			if a.Network == network && a.Address == address {
				return a, true
			}
		}
	}
	return Asset{}, false
}
