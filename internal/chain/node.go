package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
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

// A Node is one JSON-RPC endpoint of one network. What it says is believed only as far as one node can be believed, and every number is
// checked for its range. All methods may be called concurrently and end within callTime of each round trip.
type Node struct {
	network Network
	rpc     *rpc.Client
	now     func() time.Time

	heads    singleflight.Group
	lastHead cachedHead
}

// Dial connects to the first RPC URL of the network and makes sure that it serves that chain.
func Dial(ctx context.Context, network Network) (*Node, error) {
	return dial(ctx, network, answerMax)
}

func dial(ctx context.Context, network Network, answerMax int64) (*Node, error) {
	if len(network.RPC) == 0 {
		return nil, fmt.Errorf("dial %s: no RPC URL", network.ID)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64  // the default of 2 closes most connections under load
	transport.DisableCompression = true // answers are small, and what arrives is what answerMax counts
	client := &http.Client{
		Transport: limited{transport, answerMax},
		// An endpoint's URL often holds its key, which a redirect would carry elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	conn, err := rpc.DialOptions(ctx, network.RPC[0], rpc.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", network.ID, clean(err))
	}
	n := &Node{network: network, rpc: conn, now: time.Now}
	var id hexutil.Uint64
	if err := n.call(ctx, &id, "eth_chainId"); err != nil {
		conn.Close()
		return nil, fmt.Errorf("dial %s: %w", network.ID, err)
	}
	if uint64(id) != network.ChainID {
		conn.Close()
		return nil, fmt.Errorf("dial %s: the node serves chain %d, want %d", network.ID, uint64(id), network.ChainID)
	}
	return n, nil
}

// Network is what the node was dialled for.
func (n *Node) Network() Network { return n.network }

// Close gives the idle connections back.
func (n *Node) Close() { n.rpc.Close() }

func (n *Node) call(ctx context.Context, result any, method string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := n.rpc.CallContext(ctx, result, method, args...); err != nil {
		return troubleOf(method, err)
	}
	return nil
}

// batch makes one round trip of several calls. An error concerns all of them; each element has its own beside it.
func (n *Node) batch(ctx context.Context, elements []rpc.BatchElem) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := n.rpc.BatchCallContext(ctx, elements); err != nil {
		return troubleOf("batch", err)
	}
	for i := range elements {
		if elements[i].Error != nil {
			elements[i].Error = troubleOf(elements[i].Method, elements[i].Error)
		}
	}
	return nil
}

// whole makes one round trip of several calls, all of which are needed.
func (n *Node) whole(ctx context.Context, elements []rpc.BatchElem) error {
	if err := n.batch(ctx, elements); err != nil {
		return err
	}
	for _, e := range elements {
		if e.Error != nil {
			return e.Error
		}
	}
	return nil
}

// errNoBlock is a block that the node does not have, or describes in part.
var errNoBlock = errors.New("the node has no such block")

// errRange is a number of the node that cannot be.
var errRange = errors.New("the node names a number that is out of range")
