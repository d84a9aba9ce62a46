package catalog

import "testing"

func TestProviderOf_IsWhatIsRegisteredOfTheHost(t *testing.T) {
	t.Parallel()
	for baseURL, want := range map[string]string{
		"https://weather.example":             "weather.example",
		"https://api.weather.example/v2":      "weather.example",
		"https://eu.api.weather.example:8443": "weather.example",
		"https://api.weather.co.uk":           "weather.co.uk",
		"https://one.vercel.app":              "one.vercel.app", // where everybody may register a name, each is somebody else
		"https://two.vercel.app":              "two.vercel.app",
		"https://203.0.113.7:8443/a":          "203.0.113.7:8443",
		"https://203.0.113.7":                 "203.0.113.7",
		"http://[2001:db8::1]:8080":           "[2001:db8::1]:8080",
		"http://localhost:4711":               "localhost:4711",
		"http://app.localhost:4711":           "app.localhost",
	} {
		if got := ProviderOf(baseURL); got != want {
			t.Errorf("the provider of %s is %s, want %s", baseURL, got, want)
		}
	}
}
