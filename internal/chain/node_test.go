package chain

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

func TestDial_RefusesAnotherChain(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(fakeNode{"eth_chainId": `"0x1"`})
	t.Cleanup(server.Close)
	if _, err := Dial(t.Context(), networkAt(server.URL)); err == nil || !strings.Contains(err.Error(), "serves chain 1, want 84532") {
		t.Errorf("Dial: %v, want it to name both chains", err)
	}
}

func TestDial_RefusesANetworkWithoutURL(t *testing.T) {
	t.Parallel()
	if _, err := Dial(t.Context(), Network{ID: "eip155:1", ChainID: 1}); err == nil {
		t.Error("Dial without a URL: no error")
	}
}

func TestNode_TroubleHidesTheURLAndTheBody(t *testing.T) {
	t.Parallel()
	const secret = "v3/0123456789abcdef"
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "your key "+r.URL.Path+" is over its limit", http.StatusTooManyRequests)
	}))
	t.Cleanup(refusing.Close)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, refusing.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(elsewhere.Close)
	for name, url := range map[string]string{
		"nobody listens": closed.URL, "a refusal by HTTP": refusing.URL, "a redirect": elsewhere.URL,
	} {
		_, err := Dial(t.Context(), networkAt(url+"/"+secret))
		var trouble *Trouble
		if !errors.As(err, &trouble) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want a Trouble without the URL", name, err)
		}
	}
}

func TestNode_StopsReadingAnEndlessAnswer(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	sent := make(chan int64, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "eth_chainId") {
			fakeNode{"eth_chainId": `"0x14a34"`}.ServeHTTP(w, withBody(r, body))
			return
		}
		var written int64
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"0x`)
		chunk := []byte(strings.Repeat("0", 64<<10))
		for written < 100*limit {
			k, err := w.Write(chunk)
			written += int64(k)
			if err != nil {
				break
			}
		}
		sent <- written
	}))
	t.Cleanup(server.Close)
	n, err := dial(t.Context(), networkAt(server.URL), limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	if _, err := n.Balance(t.Context(), common.Address{1}); !errors.Is(err, errTooLarge) {
		t.Errorf("Balance: %v, want %v", err, errTooLarge)
	}
	if got := <-sent; got >= 100*limit {
		t.Errorf("the node could send %d bytes, want it cut off after %d", got, limit)
	}
}

func TestNode_DoesNotOutwaitItsCaller(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	n := dialHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "eth_chainId") {
			<-hold
			return
		}
		fakeNode{"eth_chainId": `"0x14a34"`}.ServeHTTP(w, withBody(r, body))
	}))
	t.Cleanup(func() { close(hold) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := n.Balance(ctx, common.Address{1})
	var trouble *Trouble
	if !errors.As(err, &trouble) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Balance: %v, want a Trouble by the deadline", err)
	}
}

func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return r
}

func TestNode_NonsenseIsTrouble(t *testing.T) {
	t.Parallel()
	const (
		over    = `"0x8000000000000000"` // one more than a bigint holds
		hash    = `"0x0000000000000000000000000000000000000000000000000000000000000001"`
		goodTip = `{"number":"0x1","timestamp":"0x1","hash":` + hash + `,"baseFeePerGas":"0x1"}`
	)
	head := func(n *Node) error { _, err := n.FreshHead(t.Context()); return err }
	tip := func(n *Node) error { _, err := n.Tip(t.Context(), common.Address{1}); return err }
	account := func(n *Node) error {
		_, err := n.Account(t.Context(), common.Address{1}, common.Address{2}, common.Hash{})
		return err
	}
	used := func(n *Node) error {
		_, err := n.AuthorizationUsed(t.Context(), common.Address{1}, common.Address{2}, common.Hash{})
		return err
	}
	receipt := func(n *Node) error { _, err := n.Receipts(t.Context(), []common.Hash{{31: 1}}); return err }
	word := func(last string) string { return `"0x` + strings.Repeat("0", 64-len(last)) + last + `"` }
	tests := map[string]struct {
		node fakeNode
		ask  func(*Node) error
	}{
		"no head":                 {fakeNode{"eth_getBlockByNumber": `null`}, head},
		"a head without a time":   {fakeNode{"eth_getBlockByNumber": `{"number":"0x1","hash":` + hash + `}`}, head},
		"a head without a number": {fakeNode{"eth_getBlockByNumber": `{"timestamp":"0x1","hash":` + hash + `}`}, head},
		"a number too large":      {fakeNode{"eth_getBlockByNumber": `{"number":` + over + `,"timestamp":"0x1","hash":` + hash + `}`}, head},
		"a time too large":        {fakeNode{"eth_getBlockByNumber": `{"number":"0x1","timestamp":` + over + `,"hash":` + hash + `}`}, head},
		"a number past 64 bits":   {fakeNode{"eth_getBlockByNumber": `{"number":"0x10000000000000000","timestamp":"0x1","hash":` + hash + `}`}, head},
		"a list for a head":       {fakeNode{"eth_getBlockByNumber": `[]`}, head},
		"a bool of 2":             {fakeNode{"eth_call": word("2")}, used},
		"a bool of 2^255":         {fakeNode{"eth_call": `"0x80` + strings.Repeat("0", 62) + `"`}, used},
		"an empty bool":           {fakeNode{"eth_call": `"0x"`}, used},
		"a bool of 33 bytes":      {fakeNode{"eth_call": word("1")[:65] + `001"`}, used},
		"a state without code":    {fakeNode{"eth_call": word("1")}, account},
		"a balance of 31 bytes":   {fakeNode{"eth_call": `"0x` + strings.Repeat("0", 62) + `"`, "eth_getCode": `"0x"`}, account},
		"a nonce too large": {fakeNode{"eth_getBlockByNumber": goodTip, "eth_getTransactionCount": over, "eth_getBalance": `"0x1"`,
			"eth_maxPriorityFeePerGas": `"0x1"`}, tip},
		"a fee too large": {fakeNode{"eth_getBlockByNumber": goodTip, "eth_getTransactionCount": `"0x1"`, "eth_getBalance": `"0x1"`,
			"eth_maxPriorityFeePerGas": `"0x1` + strings.Repeat("0", 24) + `"`}, tip},
		"a balance that is null": {fakeNode{"eth_getBlockByNumber": goodTip, "eth_getTransactionCount": `"0x1"`, "eth_getBalance": `null`,
			"eth_maxPriorityFeePerGas": `"0x1"`}, tip},
		"no base fee": {fakeNode{"eth_getBlockByNumber": `{"number":"0x1","timestamp":"0x1","hash":` + hash + `}`, "eth_getTransactionCount": `"0x1"`,
			"eth_getBalance": `"0x1"`, "eth_maxPriorityFeePerGas": `"0x1"`}, tip},
		"a receipt of another":         {receiptNode(`"transactionHash":` + word("2") + `,"blockNumber":"0x1","blockHash":` + hash + `,"status":"0x1"`), receipt},
		"a receipt without a status":   {receiptNode(`"transactionHash":` + word("1") + `,"blockNumber":"0x1","blockHash":` + hash), receipt},
		"a receipt with a status of 2": {receiptNode(`"transactionHash":` + word("1") + `,"blockNumber":"0x1","blockHash":` + hash + `,"status":"0x2"`), receipt},
		"a receipt without a block":    {receiptNode(`"transactionHash":` + word("1") + `,"blockHash":` + hash + `,"status":"0x1"`), receipt},
		"a receipt past storage":       {receiptNode(`"transactionHash":` + word("1") + `,"blockNumber":` + over + `,"blockHash":` + hash + `,"status":"0x1"`), receipt},
		"a log of another transaction": {receiptNode(`"transactionHash":` + word("1") + `,"blockNumber":"0x1","blockHash":` + hash + `,"status":"0x1","logs":[` +
			`{"address":"0x0000000000000000000000000000000000000001","topics":[],"data":"0x","blockNumber":"0x1","blockHash":` + hash + `,"transactionHash":` + word("2") + `}]`), receipt},
		"a log of another block": {receiptNode(`"transactionHash":` + word("1") + `,"blockNumber":"0x1","blockHash":` + hash + `,"status":"0x1","logs":[` +
			`{"address":"0x0000000000000000000000000000000000000001","topics":[],"data":"0x","blockNumber":"0x2","blockHash":` + hash + `,"transactionHash":` + word("1") + `}]`), receipt},
		"a log that is null": {receiptNode(`"transactionHash":` + word("1") + `,"blockNumber":"0x1","blockHash":` + hash + `,"status":"0x1","logs":[null]`), receipt},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var trouble *Trouble
			if err := tt.ask(dialFake(t, tt.node)); !errors.As(err, &trouble) {
				t.Errorf("error = %v, want a Trouble", err)
			}
		})
	}
}

func receiptNode(members string) fakeNode {
	return fakeNode{"eth_getTransactionReceipt": `{` + members + `}`, "eth_blockNumber": `"0x5"`}
}

func TestNode_Receipts_DepthCountsTheHeadAsOne(t *testing.T) {
	t.Parallel()
	const members = `"transactionHash":"0x0000000000000000000000000000000000000000000000000000000000000001",` +
		`"blockHash":"0x0000000000000000000000000000000000000000000000000000000000000002","status":"0x1","logs":[],"blockNumber":`
	for block, want := range map[string]int{
		`"0x5"`: 1, // the head itself
		`"0x4"`: 2,
		`"0x0"`: 6,
		`"0x6"`: 0, // the node that told the head has not seen it yet
	} {
		got, err := dialFake(t, receiptNode(members+block)).Receipts(t.Context(), []common.Hash{{31: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Depth != want {
			t.Errorf("block %s under head 5: depth = %d, want %d", block, got[0].Depth, want)
		}
	}
}

func TestNode_Receipts_RefusesMoreThanOneRoundTrip(t *testing.T) {
	t.Parallel()
	n := dialFake(t, fakeNode{"eth_getTransactionReceipt": `null`, "eth_blockNumber": `"0x5"`})
	if got, err := n.Receipts(t.Context(), make([]common.Hash, ReceiptsMax)); err != nil || len(got) != ReceiptsMax {
		t.Errorf("Receipts of %d: %d, %v", ReceiptsMax, len(got), err)
	}
	if _, err := n.Receipts(t.Context(), make([]common.Hash, ReceiptsMax+1)); !errors.Is(err, errBatch) {
		t.Errorf("Receipts of %d: %v, want %v", ReceiptsMax+1, err, errBatch)
	}
}
