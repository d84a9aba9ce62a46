package config

import (
	"fmt"
	"strings"
	"testing"
)

// Nobody but the operator can say what it is willing to lose: where payments are real, and where a facilitator is believed before it has proved anything.
func TestLoad_WhatMayBeLostIsTheOperatorsToSay(t *testing.T) {
	t.Parallel()
	later := strings.Replace(remoteEntry, `"receipt"`, `"later"`, 1)
	const none = "MARKET_EXPOSURE_USD="
	for name, tt := range map[string]struct {
		entry               string
		env                 string
		production, develop string // what is read; empty: it is refused
	}{
		"later, without a bound":       {later, none, "", ""},
		"receipt, without a bound":     {remoteEntry, none, "", "0"},
		"receipt, with a bound":        {remoteEntry, none + "25", "25", "25"},
		"receipt, with a broken bound": {remoteEntry, none + "all", "", ""},
		"later, with a bound":          {later, none + "25", "25", "25"},
		"later, with cents":            {later, none + "0.50", "0.5", "0.5"},
		"later, with the most":         {later, none + "1000000", "1000000", "1000000"},
		"later, with a little more":    {later, none + "1000000.000001", "", ""},
		"later, with the least":        {later, none + "0.000001", "0.000001", "0.000001"},
		"later, with a little less":    {later, none + "0.0000009", "", ""},
		"later, with nothing":          {later, none + "0", "", ""},
		"later, with less than that":   {later, none + "-1", "", ""},
		"later, with an exponent":      {later, none + "1e3", "", ""},
		"later, with a lot of digits":  {later, none + "1000000000000", "", ""},
		"later, with a sign of dollar": {later, none + "$25", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for mode, of := range map[string]struct {
				least []string
				want  string
			}{"production": {production(t), tt.production}, "development": {development(t), tt.develop}} {
				c, err := Load(append(of.least, remoteFile(t, tt.entry), tt.env))
				if of.want == "" {
					if err == nil || !strings.HasPrefix(err.Error(), "MARKET_EXPOSURE_USD: ") || strings.Contains(err.Error(), "\n") {
						t.Errorf("%s: %v, want one line about MARKET_EXPOSURE_USD", mode, err)
					}
					continue
				}
				if err != nil || c.ExposureUSD.String() != of.want {
					t.Errorf("%s: %s, %v; want %s", mode, c.ExposureUSD, err, of.want)
				}
			}
		})
	}
}

// What goes out in a second at most is a tenth of what may be lost, and no more at once than in a second.
func TestLoad_WhatGoesToSettlementASecondFollowsFromWhatMayBeLost(t *testing.T) {
	t.Parallel()
	const (
		b, s = "MARKET_EXPOSURE_USD=", "MARKET_EXPOSURE_SHARE="
		r, c = "MARKET_ADMIT_USD_PER_SECOND=", "MARKET_ADMIT_BURST_USD="
	)
	for name, tt := range map[string]struct {
		env  []string
		want string // b, r, c and s; or the variable that is refused
	}{
		"nothing, in development":        {nil, "0 0 0 0"},
		"the budget":                     {[]string{b + "200"}, "200 20 20 0"},
		"a share":                        {[]string{b + "200", s + "0.25"}, "200 5 5 2500"},
		"the whole as a share":           {[]string{b + "200", s + "1"}, "200 20 20 10000"},
		"a rate":                         {[]string{b + "200", r + "7.5"}, "200 7.5 7.5 0"},
		"a burst":                        {[]string{b + "200", r + "7.5", c + "0.5"}, "200 7.5 0.5 0"},
		"a burst of a second":            {[]string{b + "200", r + "7.5", c + "7.5"}, "200 7.5 7.5 0"},
		"a burst above a second's":       {[]string{b + "200", r + "7.5", c + "7.500001"}, "MARKET_ADMIT_BURST_USD"},
		"a burst above the default rate": {[]string{b + "200", c + "20.01"}, "MARKET_ADMIT_BURST_USD"},
		"no burst at all":                {[]string{b + "200", c + "0"}, "MARKET_ADMIT_BURST_USD"},
		"a rate above the budget":        {[]string{b + "200", r + "200.01"}, "MARKET_ADMIT_USD_PER_SECOND"},
		"no rate at all":                 {[]string{b + "200", r + "0"}, "MARKET_ADMIT_USD_PER_SECOND"},
		"a tiny budget":                  {[]string{b + "0.000001"}, "0.000001 0.000001 0.000001 0"},
		"a share of nothing":             {[]string{s + "0.25"}, "MARKET_EXPOSURE_SHARE"},
		"a rate of nothing":              {[]string{r + "1"}, "MARKET_ADMIT_USD_PER_SECOND"},
		"more than the whole":            {[]string{b + "200", s + "1.0001"}, "MARKET_EXPOSURE_SHARE"},
		"no share":                       {[]string{b + "200", s + "0"}, "MARKET_EXPOSURE_SHARE"},
		"a share of five digits":         {[]string{b + "200", s + "0.00001"}, "MARKET_EXPOSURE_SHARE"},
		"a broken budget with a rate":    {[]string{b + "x", r + "1"}, "MARKET_EXPOSURE_USD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loaded, err := Load(append(development(t), tt.env...))
			if strings.HasPrefix(tt.want, "MARKET_") {
				if err == nil || !strings.HasPrefix(err.Error(), tt.want+": ") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v, want one line about %s", err, tt.want)
				}
				return
			}
			e := loaded.Exposure()
			if got := fmt.Sprint(e.Budget, " ", e.Rate, " ", e.Burst, " ", e.Share); err != nil || got != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
		})
	}
}
