package chain

import (
	"context"
	"errors"
	"math"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

var (
	errNoBlock = errors.New("the node has no such block")                   // or describes it in part
	errRange   = errors.New("the node names a number that is out of range") // and that cannot be
)

// headAge is how long a head may be used again. Chain time is coarser than that on every network.
const headAge = time.Second

// A Head is the newest block that the node knows.
type Head struct {
	Number uint64
	Time   uint64 // Unix seconds
	Hash   common.Hash
}

type cachedHead struct {
	mu   sync.Mutex
	head Head
	at   time.Time // when it was asked for; zero: never
}

// Head returns a head that was asked for at most one second ago. Concurrent callers share one round trip.
func (n *Node) Head(ctx context.Context) (Head, error) {
	if h, ok := n.recentHead(); ok {
		return h, nil
	}
	shared := n.heads.DoChan("", func() (any, error) {
		if h, ok := n.recentHead(); ok { // somebody's round trip ended between the look before and this one
			return h, nil
		}
		// The first caller may leave while others wait for the same answer. call sets the deadline.
		return n.FreshHead(context.WithoutCancel(ctx))
	})
	select {
	case <-ctx.Done():
		return Head{}, troubleOf(blockMethod, ctx.Err())
	case got := <-shared:
		if got.Err != nil {
			return Head{}, got.Err
		}
		return got.Val.(Head), nil
	}
}

func (n *Node) recentHead() (Head, bool) {
	n.lastHead.mu.Lock()
	defer n.lastHead.mu.Unlock()
	if n.lastHead.at.IsZero() || n.now().Sub(n.lastHead.at) > headAge {
		return Head{}, false
	}
	return n.lastHead.head, true
}

// FreshHead asks the node. Of several endpoints one that shows nonsense, is behind another or has stopped is not believed while another one is better.
func (n *Node) FreshHead(ctx context.Context) (Head, error) {
	asked := n.now()
	var (
		raw *blockJSON
		b   block
	)
	fits := func(by *endpoint) (err error) {
		if b, err = raw.check(); err != nil {
			return err
		}
		return n.usable(by, b.Head)
	}
	if err := n.callFor(ctx, fits, &raw, blockMethod, latest, false); err != nil {
		return Head{}, err
	}
	n.saw(b.Number, true)
	n.lastHead.mu.Lock()
	defer n.lastHead.mu.Unlock()
	if asked.After(n.lastHead.at) {
		n.lastHead.head, n.lastHead.at = b.Head, asked
	}
	return b.Head, nil
}

// BlockTime returns the time of a block that the node has, in Unix seconds.
func (n *Node) BlockTime(ctx context.Context, number uint64) (uint64, error) {
	b, err := n.block(ctx, hexutil.EncodeUint64(number))
	if err != nil {
		return 0, err
	}
	if b.Number != number {
		return 0, troubleOf(blockMethod, errNoBlock)
	}
	return b.Time, nil
}

// A block is the part of a block that is read here. Its hash is the node's word: chains add fields to the header, so it is not computed.
type block struct {
	Head
	baseFee *big.Int
}

// blockJSON has pointers, because a member that is absent must not pass for zero.
type blockJSON struct {
	Number    *hexutil.Uint64 `json:"number"`
	Timestamp *hexutil.Uint64 `json:"timestamp"`
	Hash      *common.Hash    `json:"hash"`
	BaseFee   *hexutil.Big    `json:"baseFeePerGas"`
}

const blockMethod = "eth_getBlockByNumber"

func (n *Node) block(ctx context.Context, tag string) (block, error) {
	var raw *blockJSON
	if err := n.call(ctx, &raw, blockMethod, tag, false); err != nil {
		return block{}, err
	}
	b, err := raw.check()
	if err != nil {
		return block{}, troubleOf(blockMethod, err)
	}
	return b, nil
}

func (raw *blockJSON) check() (block, error) {
	if raw == nil || raw.Number == nil || raw.Timestamp == nil || raw.Hash == nil {
		return block{}, errNoBlock
	}
	// The database keeps them as bigint.
	if *raw.Number > math.MaxInt64 || *raw.Timestamp > math.MaxInt64 {
		return block{}, errRange
	}
	b := block{Head: Head{Number: uint64(*raw.Number), Time: uint64(*raw.Timestamp), Hash: *raw.Hash}}
	if raw.BaseFee != nil {
		b.baseFee = raw.BaseFee.ToInt()
	}
	return b, nil
}
