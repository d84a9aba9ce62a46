package chain

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

var (
	ourWallet  = common.HexToAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8")
	itsPayer   = common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC")
	transferTx = common.HexToHash("0x11")
)

const lastBlock = `{"number":"0x14","timestamp":"0x64","hash":"0x00000000000000000000000000000000000000000000000000000000000000bb"}`

// logOf is a Transfer log as a node writes it, with what a test changes of it.
func logOf(t *testing.T, from, to common.Address, units int64, change map[string]any) map[string]any {
	t.Helper()
	l := map[string]any{
		"address": usdc().Address, "topics": []common.Hash{topicTransfer, topicOf(from), topicOf(to)}, "data": hexutil.Bytes(common.BigToHash(common.Big1).Bytes()),
		"blockNumber": "0x12", "transactionHash": transferTx, "transactionIndex": "0x0", "blockHash": common.HexToHash("0xaa"), "logIndex": "0x3", "removed": false,
	}
	l["data"] = fmt.Sprintf("0x%064x", units)
	for k, v := range change {
		l[k] = v
	}
	return l
}

func transfersFrom(t *testing.T, last string, logs ...map[string]any) ([]Transfer, Head, error) {
	t.Helper()
	text, err := json.Marshal(append([]map[string]any{}, logs...))
	if err != nil {
		t.Fatal(err)
	}
	n := dialFake(t, fakeNode{"eth_getLogs": string(text), "eth_getBlockByNumber": last})
	return n.Transfers(t.Context(), usdc().Address, ourWallet, 10, 20)
}

func TestNode_Transfers_AreEachOnceInTheirOrder(t *testing.T) {
	t.Parallel()
	all, last, err := transfersFrom(t, lastBlock, logOf(t, ourWallet, itsPayer, 7, map[string]any{"blockNumber": "0x13"}), logOf(t, itsPayer, ourWallet, 9, map[string]any{"logIndex": "0x1"}),
		logOf(t, ourWallet, itsPayer, 0, map[string]any{"logIndex": "0x8"}), logOf(t, ourWallet, ourWallet, 5, map[string]any{"logIndex": "0x9"}))
	if err != nil || len(all) != 2 || last.Number != 20 {
		t.Fatalf("transfers %+v to block %d, %v; want two to block 20", all, last.Number, err)
	}
	in, out := all[0], all[1]
	if !in.In || in.Other != itsPayer || in.Amount.String() != "9" || in.BlockNumber != 18 || in.LogIndex != 1 || in.Transaction != transferTx {
		t.Errorf("what came: %+v", in)
	}
	if out.In || out.Other != itsPayer || out.Amount.String() != "7" || out.BlockNumber != 19 {
		t.Errorf("what went: %+v", out)
	}
}

func TestNode_Transfers_NothingIsConcludedFromNonsense(t *testing.T) {
	t.Parallel()
	stranger := common.Address{1}
	for name, change := range map[string]map[string]any{
		"of another asset":           {"address": stranger},
		"of another event":           {"topics": []common.Hash{topicAuthorizationUsed, topicOf(itsPayer), topicOf(ourWallet)}},
		"of somebody else's":         {"topics": []common.Hash{topicTransfer, topicOf(itsPayer), topicOf(stranger)}},
		"with an odd address":        {"topics": []common.Hash{topicTransfer, common.MaxHash, topicOf(ourWallet)}},
		"with too few topics":        {"topics": []common.Hash{topicTransfer, topicOf(ourWallet)}},
		"before the range":           {"blockNumber": "0x9"},
		"behind the range":           {"blockNumber": "0x15"},
		"of a block that was left":   {"removed": true},
		"with an index out of range": {"logIndex": "0x80000000"},
		"of no transaction":          {"transactionHash": common.Hash{}},
		"with no amount":             {"data": "0x"},
	} {
		if all, _, err := transfersFrom(t, lastBlock, logOf(t, itsPayer, ourWallet, 9, change)); err == nil {
			t.Errorf("a log %s: %+v", name, all)
		}
	}
}

func TestNode_Transfers_ANodeThatIsBehindHasNotNothing(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{"no such block": `null`, "another one": strings.Replace(lastBlock, "0x14", "0x13", 1)} {
		if all, _, err := transfersFrom(t, last); err == nil || Narrows(err) {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}

func TestNarrows_WhatANodeRefusesMayBeAskedForLess(t *testing.T) {
	t.Parallel()
	n := dialFake(t, fakeNode{"eth_getLogs": `error:{"code":-32005,"message":"query returned more than 10000 results"}`, "eth_getBlockByNumber": lastBlock})
	if _, _, err := n.Transfers(t.Context(), usdc().Address, ourWallet, 10, 20); !Narrows(err) {
		t.Errorf("refused: %v", err)
	}
	if Narrows(troubleOf(blockMethod, errAnchor)) || Narrows(nil) {
		t.Error("what a smaller range does not help is narrowed")
	}
}
