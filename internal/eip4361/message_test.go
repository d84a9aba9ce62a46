package eip4361_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"market/internal/eip4361"
)

func full() eip4361.Message {
	statement, expires, from, id := "Read", "2026-11-29T12:05:00Z", "2026-11-29T11:59:00Z", "r-1"
	return eip4361.Message{
		Domain: "shop.test", Address: common.HexToAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"), Statement: &statement, URI: "https://shop.test/a", Version: "1",
		ChainID: 8453, Nonce: "0f1e2d3c4b5a6978", IssuedAt: "2026-11-29T12:00:00Z", ExpirationTime: &expires, NotBefore: &from, RequestID: &id,
		Resources: []string{"https://shop.test/a", "https://shop.test/b"},
	}
}

func TestParse_ReadsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*eip4361.Message){
		"everything":          func(*eip4361.Message) {},
		"no statement":        func(m *eip4361.Message) { m.Statement = nil },
		"nothing of the rest": func(m *eip4361.Message) { m.ExpirationTime, m.NotBefore, m.RequestID, m.Resources = nil, nil, nil, nil },
		"no resources":        func(m *eip4361.Message) { m.Resources = []string{} },
		"an empty id":         func(m *eip4361.Message) { m.RequestID = new(string) },
	} {
		want := full()
		change(&want)
		got, err := eip4361.Parse(want.Text())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParse_RefusesEveryOtherSpelling(t *testing.T) {
	t.Parallel()
	good := full().Text()
	swap := func(old, with string) string {
		changed := strings.Replace(good, old, with, 1)
		if changed == good {
			t.Fatalf("%q is not in it", old)
		}
		return changed
	}
	for name, text := range map[string]string{
		"nothing": "", "a line end after it": good + "\n", "a line after it": good + "\nx", "ends of lines of another system": strings.ReplaceAll(good, "\n", "\r\n"),
		"an address in small letters": swap("0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"),
		"no address":                  swap("0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "somebody"),
		"lines in another order":      swap("URI: https://shop.test/a\nVersion: 1", "Version: 1\nURI: https://shop.test/a"),
		"a line twice":                swap("Version: 1", "Version: 1\nVersion: 1"),
		"a line that is missing":      swap("Nonce: 0f1e2d3c4b5a6978\n", ""),
		"a chain with a zero before":  swap("Chain ID: 8453", "Chain ID: 08453"),
		"a chain that is none":        swap("Chain ID: 8453", "Chain ID: base"),
		"a chain beyond all":          swap("Chain ID: 8453", "Chain ID: 18446744073709551616"),
		"a letter of another script":  swap("Read", "Rеad"),
		"a control character":         swap("Read", "Re\x1bad"),
		"a statement of two lines":    swap("Read", "Read\nand write"),
		"too many resources":          good + strings.Repeat("\n- x", eip4361.ResourcesMax),
		"too long":                    swap("Read", strings.Repeat("R", eip4361.TextBytesMax)),
	} {
		if m, err := eip4361.Parse(text); !errors.Is(err, eip4361.ErrForm) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func FuzzParse_WhatIsReadIsPrintedAsItCame(f *testing.F) {
	f.Add(full().Text())
	f.Add("shop.test wants you to sign in with your Ethereum account:\n0x0000000000000000000000000000000000000000\n\n\nURI: \nVersion: \nChain ID: 0\nNonce: \nIssued At: ")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := eip4361.Parse(text)
		if err == nil && m.Text() != text {
			t.Errorf("%q was read as %q", text, m.Text())
		}
	})
}
