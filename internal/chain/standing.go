package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"market/internal/money"
)

// HeadAgeMax is how old the newest block may be before nothing is concluded from it any more: the node is stuck, or the chain is.
const HeadAgeMax = stuckAfter

// A StaleError is that the newest block of every node that answered is older than HeadAgeMax.
type StaleError struct {
	Network string
	Age     time.Duration // of the only node's; zero where there are several
}

func (e *StaleError) Error() string {
	if e.Age == 0 {
		return fmt.Sprintf("%s: the newest block of every node that answers is older than %s: the chain stands still, or the clock of this machine is ahead", e.Network, HeadAgeMax)
	}
	return fmt.Sprintf("%s: the newest block is %s old, and may be %s: the node or the chain stands still, or the clock of this machine is ahead", e.Network,
		e.Age.Truncate(time.Second), HeadAgeMax)
}

// A Standing is what an account of ours may do on a network, as of one view of the chain.
type Standing struct {
	Head   Head
	Sure   uint64          // whatever came in below this block is in the balances, even where several machines answer under one URL
	Assets []AssetStanding // in the order of the configuration
}

// An AssetStanding is what an asset says of itself and of the account. An asset that cannot be asked whether it is paused, or whether it blocks an account,
// does neither.
type AssetStanding struct {
	Asset
	Paused  bool
	Blocked bool         // the account
	Holds   money.Amount // of the account
}

// callsOfAsset are those that one asset takes of a round trip.
const callsOfAsset = 3

// Standing reads it, in one round trip for all the assets that a network usually has. It is never what was read before. The error is a *ChainError where the
// chain is another one, a *StaleError where nothing can be concluded, or else a *Trouble.
func (n *Node) Standing(ctx context.Context, account common.Address) (s Standing, err error) {
	err = OneView(ctx, func(ctx context.Context) error {
		s = Standing{}
		most := batchMax / callsOfAsset
		for assets := n.network.Assets; ; assets = assets[most:] {
			part := assets[:min(most, len(assets))]
			head, of, err := n.standing(ctx, account, part)
			if err != nil {
				return err
			}
			if s.Head.Hash == (common.Hash{}) {
				s.Head, s.Sure = head, head.Number-min(head.Number, lagMax)
			}
			s.Assets = append(s.Assets, of...)
			if len(part) == len(assets) {
				return nil
			}
		}
	})
	if err != nil {
		return Standing{}, n.standingError(err)
	}
	if n.stuck(s.Head) {
		return Standing{}, &StaleError{Network: n.network.ID, Age: n.now().Sub(time.Unix(int64(s.Head.Time), 0))} //nolint:gosec // range-checked by check
	}
	return s, nil
}

// standingError is the plain word where every endpoint that answered said the same.
func (n *Node) standingError(err error) error {
	if everyEndpoint(err, func(err error) bool { return errors.Is(err, errStuck) }) {
		return &StaleError{Network: n.network.ID}
	}
	other, _ := errors.AsType[*ChainError](err)
	if other != nil && everyEndpoint(err, func(err error) bool { _, is := errors.AsType[*ChainError](err); return is }) {
		return other
	}
	return err
}

// Denies says whether an error of Standing is a no of every node that answered, as against an answer that was none.
func Denies(err error) bool {
	switch err.(type) { //nolint:errorlint // inside of another error it is the word of one node among several
	case *ChainError, *StaleError:
		return true
	}
	return false
}

// everyEndpoint says whether each endpoint that was asked failed in such a way.
func everyEndpoint(err error, so func(error) bool) bool {
	if out, several := errors.AsType[*outError](err); several {
		return !slices.ContainsFunc(out.errs, func(e error) bool { return !so(e) })
	}
	return so(err)
}

// standing is one round trip. The chain and the head go with each, so that an endpoint which changed under its URL is not believed. The block comes first:
// what is asked after it is of that block or of a later one.
func (n *Node) standing(ctx context.Context, account common.Address, assets []Asset) (Head, []AssetStanding, error) {
	var (
		id  hexutil.Uint64
		raw *blockJSON
		b   block
	)
	elements := []rpc.BatchElem{{Method: chainMethod, Result: &id}, {Method: blockMethod, Args: []any{latest, false}, Result: &raw}}
	answers := make([]struct{ paused, blocked, balance hexutil.Bytes }, len(assets))
	for i, a := range assets {
		elements = append(elements,
			read(a.Address, pack("balanceOf", account), latest, &answers[i].balance),
			read(a.Address, pack("paused"), latest, &answers[i].paused),
			read(a.Address, pack("isBlacklisted", account), latest, &answers[i].blocked))
	}
	place := 0
	look := func() (err error) {
		if uint64(id) != n.network.ChainID {
			return &ChainError{Network: n.network.ID, Place: place, Got: uint64(id), Want: n.network.ChainID}
		}
		b, err = raw.check()
		return err
	}
	fits := func(by *endpoint) error {
		place = by.place
		if err := look(); err != nil {
			return err
		}
		return n.usable(by, b.Head)
	}
	if err := n.ask(ctx, question{elements: elements, fits: fits}); err != nil {
		return Head{}, nil, err
	}
	if err := errors.Join(elements[0].Error, elements[1].Error); err != nil {
		return Head{}, nil, err
	}
	if err := look(); err != nil { // where something of an asset went wrong nobody has looked at the rest yet
		return Head{}, nil, troubleOf(blockMethod, err)
	}
	n.saw(b.Number, true)
	standings := make([]AssetStanding, len(assets))
	for i, a := range assets {
		of := elements[2+callsOfAsset*i:]
		if err := errors.Join(of[0].Error, unlessOfContract(of[1].Error), unlessOfContract(of[2].Error)); err != nil {
			return Head{}, nil, err
		}
		holds, err := unpackAmount(answers[i].balance)
		if err != nil {
			return Head{}, nil, troubleOf("balanceOf", err)
		}
		standings[i] = AssetStanding{Asset: a, Paused: says(answers[i].paused), Blocked: says(answers[i].blocked), Holds: holds}
	}
	return b.Head, standings, nil
}

// says is a plain yes. A contract that lacks the function reverts, or gives nothing or something else.
func says(answer []byte) bool {
	yes, err := unpackBool(answer)
	return yes && err == nil
}

// executionTexts are how nodes word that a contract came to no end, which is how old ones answer what they lack.
var executionTexts = []string{"revert", "invalid opcode", "invalid jump", "out of gas", "stack underflow"}

// unlessOfContract drops an error that a contract gave; one of the node stays.
func unlessOfContract(err error) error {
	answered, ok := errors.AsType[*answerError](err)
	if !ok {
		return err
	}
	text := strings.ToLower(answered.text)
	if answered.ofContract() || slices.ContainsFunc(executionTexts, func(part string) bool { return strings.Contains(text, part) }) {
		return nil
	}
	return err
}

// HaveCode says which accounts are contracts, or keys that delegated to one, in one round trip.
func (n *Node) HaveCode(ctx context.Context, accounts []common.Address) ([]bool, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	answers := make([]hexutil.Bytes, len(accounts))
	elements := make([]rpc.BatchElem, len(accounts))
	for i, a := range accounts {
		elements[i] = rpc.BatchElem{Method: "eth_getCode", Args: []any{a, latest}, Result: &answers[i]}
	}
	if err := n.whole(ctx, elements); err != nil {
		return nil, err
	}
	have := make([]bool, len(accounts))
	for i, code := range answers {
		have[i] = len(code) > 0
	}
	return have, nil
}
