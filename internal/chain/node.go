package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/sync/singleflight"
)

const (
	callTime = 5 * time.Second // one round trip, with its answer read
	// answerMax is what is read of one answer: a full batch of receipts of busy transactions is far smaller.
	answerMax = 16 << 20 // bytes
	// wordMax is what is read of an answer that a stranger's contract words, and that is one word: such an answer costs the stranger nothing.
	wordMax = 4 << 10 // bytes
	// batchMax is the calls of one round trip; public nodes refuse larger ones.
	batchMax = 50
)

// A Node is one network over one or more JSON-RPC endpoints, of which one is in use and the others take over where that one refuses, is not reached,
// or answers with nonsense. What it says is believed only as far as one node can be believed, and every number is checked for its range. All methods
// may be called concurrently and end within callTime of each endpoint that is asked, or with their context.
type Node struct {
	network   Network
	endpoints []*endpoint // in the order of the configuration
	now       func() time.Time

	mu       sync.Mutex
	current  *endpoint // the last that took over; nil before the first
	newest   uint64    // the highest head that any endpoint has shown and that can be
	raisedAt time.Time // when it was shown first
	newestAt time.Time // when it was shown last

	checking sync.Mutex
	checked  bool

	heads    singleflight.Group
	lastHead cachedHead
}

// Open makes a node of the network's endpoints and asks none of them anything. Gates stand before the endpoints in their order; who has none is free.
// The error means that the configuration can not be used.
func Open(network Network, gates ...Gate) (*Node, error) { return open(network, answerMax, gates) }

func open(network Network, answerMax int64, gates []Gate) (*Node, error) {
	if len(network.RPC) == 0 {
		return nil, fmt.Errorf("open %s: no RPC URL", network.ID)
	}
	n := &Node{network: network, now: time.Now}
	for i, url := range network.RPC {
		conn, err := dialEndpoint(url, answerMax)
		if err != nil {
			n.Close()
			return nil, fmt.Errorf("open %s: RPC endpoint %d: %w", network.ID, i+1, err)
		}
		e := &endpoint{place: i + 1, rpc: conn, gate: free{}}
		if i < len(gates) && gates[i] != nil {
			e.gate = gates[i]
		}
		n.endpoints = append(n.endpoints, e)
	}
	return n, nil
}

// Dial opens a node and makes sure that an endpoint answers and that none serves another chain.
func Dial(ctx context.Context, network Network, gates ...Gate) (*Node, error) {
	return dial(ctx, network, answerMax, gates...)
}

func dial(ctx context.Context, network Network, answerMax int64, gates ...Gate) (*Node, error) {
	n, err := open(network, answerMax, gates)
	if err != nil {
		return nil, err
	}
	if err := n.identify(ctx); err != nil {
		n.Close()
		return nil, fmt.Errorf("dial %s: %w", network.ID, err)
	}
	return n, nil
}

// Check finds out whether the chain is the one that the configuration describes: the endpoints that can be reached serve it, and its assets are what they
// are said to be. Once that is so it is not asked again. Lies tells an error that only another configuration ends from one that may end by itself.
func (n *Node) Check(ctx context.Context) error {
	n.checking.Lock() // whoever comes while another one checks has the same question
	defer n.checking.Unlock()
	if n.checked {
		return nil
	}
	if err := n.identify(ctx); err != nil {
		return err
	}
	err := OneView(ctx, n.checkAssets)
	n.checked = err == nil
	return err
}

// checkAssets asks one endpoint, which shows first that it is where the chain is: one that still syncs has no contract yet, or an older one, and that is
// no lie. FreshHead leaves such an endpoint where another is better.
func (n *Node) checkAssets(ctx context.Context) error {
	if len(n.network.Assets) == 0 {
		return nil
	}
	head, err := n.FreshHead(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, asset := range n.network.Assets {
		errs = append(errs, n.CheckAsset(ctx, asset))
	}
	err = errors.Join(errs...)
	if Lies(err) && n.stuck(head) {
		return troubleOf(blockMethod, fmt.Errorf("%w, so nothing is concluded from this: %s", errStuck, err))
	}
	return err
}

// Lies says whether an error of a node means that the chain is not the one that the configuration describes.
func Lies(err error) bool {
	_, other := errors.AsType[*ChainError](err)
	_, differs := errors.AsType[*AssetError](err)
	return other || differs
}

// identify asks every endpoint that has not said it yet which chain it serves. One that serves another is an error, whatever the others say; one that
// does not answer is none as long as another does, and is asked before it is used. One that hangs leaves of the caller's time what the rest of a check
// needs: a network would else never be checked while one of its endpoints is a black hole.
func (n *Node) identify(ctx context.Context) error {
	errs := make([]error, len(n.endpoints))
	var asking sync.WaitGroup
	for i, e := range n.endpoints {
		if !n.isIdentified(e) {
			asking.Go(func() { errs[i] = n.examine(ctx, e, false, len(n.endpoints)-1) })
		}
	}
	asking.Wait()
	var unfit []*unfitError
	for _, err := range errs {
		if other, ok := errors.AsType[*ChainError](err); ok {
			return other
		}
		if u, ok := errors.AsType[*unfitError](err); ok {
			unfit = append(unfit, u)
		}
	}
	switch {
	case slices.Contains(errs, nil):
		return nil
	case len(unfit) == 0:
		return troubleOf(chainMethod, errs[0]) // the caller left
	}
	return troubleOf(chainMethod, n.out(unfit))
}

const chainMethod = "eth_chainId"

func (n *Node) isIdentified(e *endpoint) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return e.identified
}

// Network is what the node was opened for.
func (n *Node) Network() Network { return n.network }

// Close gives the idle connections back.
func (n *Node) Close() {
	for _, e := range n.endpoints {
		e.rpc.Close()
	}
}

func (n *Node) call(ctx context.Context, result any, method string, args ...any) error {
	return n.callFor(ctx, nil, result, method, args...)
}

// callFor is a call whose result has to fit what is expected of an endpoint that is used.
func (n *Node) callFor(ctx context.Context, fits func(by *endpoint) error, result any, method string, args ...any) error {
	q := question{elements: []rpc.BatchElem{{Method: method, Args: args, Result: result}}, single: true, fits: fits}
	if err := n.ask(ctx, q); err != nil {
		return err
	}
	return q.elements[0].Error
}

// batch makes one round trip of several calls. An error concerns all of them; each element has its own beside it.
func (n *Node) batch(ctx context.Context, elements []rpc.BatchElem) error {
	return n.ask(ctx, question{elements: elements})
}

// whole makes one round trip of several calls, all of which are needed.
func (n *Node) whole(ctx context.Context, elements []rpc.BatchElem) error {
	return n.wholeFor(ctx, nil, elements)
}

// wholeFor is whole with results that have to fit what is expected of an endpoint that is used.
func (n *Node) wholeFor(ctx context.Context, fits func(by *endpoint) error, elements []rpc.BatchElem) error {
	if err := n.ask(ctx, question{elements: elements, fits: fits}); err != nil {
		return err
	}
	for _, e := range elements {
		if e.Error != nil {
			return e.Error
		}
	}
	return nil
}

// ask puts a question to the endpoint in use, and where that cannot answer to the next, each once. Its errors are *Trouble.
func (n *Node) ask(ctx context.Context, q question) error {
	v := viewOf(ctx)
	order := []*endpoint{v.endpoint()}
	if order[0] == nil {
		order = n.order()
	}
	var unfit []*unfitError
	for i, e := range order {
		others := len(order) - i - 1
		err := n.takeOver(ctx, e, others)
		if err == nil {
			err = n.roundTrip(ctx, e, q, others)
		}
		u, no := errors.AsType[*unfitError](err)
		switch {
		case no:
			unfit = append(unfit, u)
			continue
		case err == nil && !v.keep(e):
			v.lose() // two questions of one view were under way together, and two endpoints answered
			err = errApart
		}
		if err != nil {
			return troubleOf(q.method(), err)
		}
		return nil
	}
	v.lose()
	return troubleOf(q.method(), n.out(unfit))
}

var errApart = errors.New("two endpoints answered what one has to")
