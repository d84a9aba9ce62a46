package siwx

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/postgres/pgtest"
)

func TestStore_UseOnce_OfManyAtOnceOneIsFirst(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	p := Proof{Address: common.HexToAddress(goldenAddress), Nonce: "0f1e2d3c4b5a6978", ExpiresAt: issued}
	var (
		wg    sync.WaitGroup
		first atomic.Int32
	)
	for range 20 {
		wg.Go(func() {
			ok, err := Store{}.UseOnce(t.Context(), db, p)
			if err != nil {
				t.Error(err)
			}
			if ok {
				first.Add(1)
			}
		})
	}
	wg.Wait()
	if first.Load() != 1 {
		t.Errorf("%d were the first to use one sign-in, want 1", first.Load())
	}
}

func TestStore_UseOnce_ANonceIsItsAddressesOwn(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	p := Proof{Address: common.HexToAddress(goldenAddress), Nonce: "0f1e2d3c4b5a6978", ExpiresAt: issued}
	elsewhere, another := p, p
	elsewhere.Address[0]++
	another.Nonce += "0"
	for name, use := range map[string]Proof{"one": p, "another address": elsewhere, "another nonce": another} {
		if ok, err := (Store{}).UseOnce(t.Context(), db, use); err != nil || !ok {
			t.Errorf("%s: first = %v, %v, want true", name, ok, err)
		}
	}
}

func TestStore_DeleteExpired_ForgetsOnlyWhatCanNotComeBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	until := pgtest.Freeze(t, db)
	p := Proof{Address: common.HexToAddress(goldenAddress), Nonce: "0f1e2d3c4b5a6978", ExpiresAt: until}
	if _, err := (Store{}).UseOnce(t.Context(), db, p); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		shift time.Duration
		want  int
	}{{forgetAfter - time.Microsecond, 0}, {time.Microsecond, 1}, {time.Microsecond, 0}}
	for _, step := range steps {
		pgtest.Shift(t, db, step.shift)
		if n, err := (Store{}).DeleteExpired(t.Context(), db, 10); err != nil || n != step.want {
			t.Errorf("deleted %d, %v, want %d", n, err, step.want)
		}
	}
}

func TestStore_DeleteExpired_StopsAtItsLimit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	long := pgtest.Freeze(t, db).Add(-2 * forgetAfter)
	for _, nonce := range []string{"aaaaaaaa", "bbbbbbbb", "cccccccc"} {
		if _, err := (Store{}).UseOnce(t.Context(), db, Proof{Nonce: nonce, ExpiresAt: long}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{2, 1, 0} {
		if n, err := (Store{}).DeleteExpired(t.Context(), db, 2); err != nil || n != want {
			t.Errorf("deleted %d, %v, want %d", n, err, want)
		}
	}
}
