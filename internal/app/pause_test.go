package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// However often it is asked, it is done once in a rest, and what was asked last is done.
func TestSpaced_WhatIsAskedAllTheTimeIsDoneOnceInARest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		began := time.Now()
		var done []time.Duration
		s := newSpaced(time.Second, func() { done = append(done, time.Since(began)) })
		ended := make(chan struct{})
		go func() { defer close(ended); s.run(ctx) }()
		for range 250 { // in 2.5 s
			s.ask()
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		stop()
		<-ended
		want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}
		if len(done) != len(want) {
			t.Fatalf("done at %s, want %s", done, want)
		}
		for i := range want {
			if done[i] != want[i] {
				t.Errorf("done at %s, want %s", done, want)
			}
		}
	})
}
