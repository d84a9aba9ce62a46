package payment

import (
	"strings"
	"testing"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/wire"
)

const (
	requirementsV1 = `{"scheme":"exact","network":"base-sepolia","maxAmountRequired":"12345","resource":"` + goldenResource + `","description":"",` +
		`"mimeType":"","payTo":"` + goldenTreasury + `","maxTimeoutSeconds":60,"asset":"` + goldenAsset + `","extra":{"name":"USDC","version":"2"}}`
	requirementsV2 = `{"scheme":"exact","network":"eip155:84532","amount":"12345","payTo":"` + goldenTreasury + `","maxTimeoutSeconds":60,` +
		`"asset":"` + goldenAsset + `","extra":{"name":"USDC","version":"2"}}`
)

func parsed(t *testing.T, document string) wire.Value {
	t.Helper()
	v, err := wire.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestReadRequirements_ReadsTheFormOfItsVersion(t *testing.T) {
	t.Parallel()
	for version, tt := range map[Version]struct{ document, network string }{V1: {requirementsV1, "base-sepolia"}, V2: {requirementsV2, "eip155:84532"}} {
		a, err := ReadRequirements(version, parsed(t, tt.document))
		if err != nil {
			t.Errorf("v%d: %v", version, err)
			continue
		}
		name, _ := a.Extra("name")
		if a.Scheme != "exact" || a.Network != tt.network || a.Amount.String() != "12345" || a.Asset.Hex() != goldenAsset || a.PayTo.Hex() != goldenTreasury ||
			a.MaxTimeoutSeconds != 60 || name != "USDC" {
			t.Errorf("v%d: %+v", version, a)
		}
	}
}

func TestReadRequirements_CallsWhatIsWrongTheSellersTerms(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		version  Version
		document string
		code     Code
	}{
		"the other version's form": {V1, requirementsV2, CodeNetwork},
		"the form of version 1":    {V2, requirementsV1, CodeNetwork},
		"no amount":                {V2, strings.Replace(requirementsV2, `"amount"`, `"maxAmountRequired"`, 1), CodeRequirements},
		"no amount in version 1":   {V1, strings.Replace(requirementsV1, `"maxAmountRequired"`, `"amount"`, 1), CodeRequirements},
		"a recipient that is none": {V2, strings.Replace(requirementsV2, goldenTreasury, "treasury", 1), CodeRequirements},
		"a timeout as text":        {V2, strings.Replace(requirementsV2, `:60`, `:"60"`, 1), CodeRequirements},
		"no version of ours":       {Version(3), requirementsV2, CodeVersion},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadRequirements(tt.version, parsed(t, tt.document))
			wantRefusal(t, err, call.PaymentMalformed, tt.code, "")
		})
	}
}

func TestCheckLife_HasExactBoundaries(t *testing.T) {
	t.Parallel()
	const now, least = 1_000, 6
	tests := map[string]struct {
		after, before uint64
		code          Code // empty: good
	}{
		"a second too little":   {0, now + least - 1, CodeValidBefore},
		"just enough":           {0, now + least, ""},
		"a second more":         {0, now + least + 1, ""},
		"a second old":          {now - 1, now + 100, ""},
		"valid after this time": {now, now + 100, CodeValidAfter},
		"valid a second later":  {now + 1, now + 100, CodeValidAfter},
	}
	for name, tt := range tests {
		err := CheckLife(chain.Signed{Authorization: chain.Authorization{ValidAfter: tt.after, ValidBefore: tt.before}}, now, least)
		if tt.code == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		wantRefusal(t, err, call.PaymentInvalid, tt.code, "")
	}
}
