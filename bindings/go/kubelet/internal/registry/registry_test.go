package registry

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const digest = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

var right, garbage = Credential{Username: "a", Password: "secret"}, Credential{Username: "a", Password: "garbage"}

// internet is all hosts in one server; what they are asked is noted.
type internet struct {
	*Client
	mu    sync.Mutex
	asked []string // METHOD host/path Authorization
}

func (i *internet) requests() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.Join(i.asked, "\n")
}

// hosts answers by the name that a request is for.
func hosts(t *testing.T, handlers map[string]http.HandlerFunc) *internet {
	t.Helper()
	i := &internet{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		i.mu.Lock()
		i.asked = append(i.asked, strings.TrimSpace(fmt.Sprintf("%s %s%s %s", r.Method, r.Host, r.URL.Path, kind)))
		i.mu.Unlock()
		if handlers[r.Host] == nil {
			t.Errorf("%s was asked for %s", r.Host, r.URL)
			return
		}
		handlers[r.Host](w, r)
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // any name is this server
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	i.Client = &Client{Transport: transport}
	return i
}

// basic lets the right Secret see the manifest, as most private registries do.
func basic(w http.ResponseWriter, r *http.Request) {
	if name, password, _ := r.BasicAuth(); name != right.Username || password != right.Password {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	manifest(w, r)
}

func manifest(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v2/a/app/manifests/v1" && r.URL.Path != "/v2/a/app/manifests/"+digest {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Docker-Content-Digest", digest)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// The token endpoint is on another host, as Docker Hub's.
func tokens(w http.ResponseWriter, r *http.Request) {
	if name, password, _ := r.BasicAuth(); name != right.Username || password != right.Password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprintf(w, `{"token": "for %s"}`, r.URL.Query().Get("scope"))
}

func bearer(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer for repository:a/app:pull" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://203.0.113.7/token",service="registry",scope="repository:a/app:pull"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	manifest(w, r)
}

func TestAsk(t *testing.T) {
	redirected := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
	}
	// It wants credentials first.
	authenticated := func(then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				basic(w, r)
				return
			}
			then(w, r)
		}
	}
	const head, tag = "HEAD r.example/v2/a/app/manifests/", "HEAD r.example/v2/a/app/manifests/v1"
	for name, test := range map[string]struct {
		image, digest string
		credential    Credential
		hosts         map[string]http.HandlerFunc
		want          Answer
		asked, fails  string
	}{
		"the right Secret":                       {credential: right, hosts: map[string]http.HandlerFunc{"r.example": basic}, want: Yes, asked: tag + "\n" + tag + " Basic"},
		"a garbage Secret":                       {credential: garbage, hosts: map[string]http.HandlerFunc{"r.example": basic}, want: No, asked: tag + "\n" + tag + " Basic"},
		"no Secret":                              {hosts: map[string]http.HandlerFunc{"r.example": basic}, want: No, asked: tag},
		"a Secret without a password":            {credential: Credential{Username: "a"}, hosts: map[string]http.HandlerFunc{"r.example": basic}, want: No, asked: tag},
		"an image for everybody":                 {hosts: map[string]http.HandlerFunc{"r.example": manifest}, want: Yes, asked: tag},
		"by digest":                              {digest: digest, credential: right, hosts: map[string]http.HandlerFunc{"r.example": basic}, want: Yes, asked: head + digest + "\n" + head + digest + " Basic"},
		"by the image's digest":                  {image: "r.example/a/app:v1@" + digest, hosts: map[string]http.HandlerFunc{"r.example": manifest}, want: Yes, asked: head + digest},
		"another digest is answered":             {digest: "sha256:" + strings.Repeat("0", 64), hosts: map[string]http.HandlerFunc{"r.example": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Docker-Content-Digest", digest) }}, fails: "it answers with"},
		"403":                                    {credential: right, hosts: map[string]http.HandlerFunc{"r.example": authenticated(status(403))}, want: No},
		"404":                                    {credential: right, hosts: map[string]http.HandlerFunc{"r.example": authenticated(status(404))}, want: No},
		"429":                                    {credential: right, hosts: map[string]http.HandlerFunc{"r.example": authenticated(status(429))}, fails: "429"},
		"500":                                    {credential: right, hosts: map[string]http.HandlerFunc{"r.example": authenticated(status(500))}, fails: "500"},
		"a token from another host":              {credential: right, hosts: map[string]http.HandlerFunc{"r.example": bearer, "203.0.113.7": tokens}, want: Yes, asked: tag + "\nGET 203.0.113.7/token Basic\n" + tag + " Bearer"},
		"no token for a garbage Secret":          {credential: garbage, hosts: map[string]http.HandlerFunc{"r.example": bearer, "203.0.113.7": tokens}, want: No, asked: tag + "\nGET 203.0.113.7/token Basic"},
		"the tokens' host is down":               {credential: right, hosts: map[string]http.HandlerFunc{"r.example": bearer, "203.0.113.7": status(503)}, fails: "503"},
		"tokens of the node's metadata service":  {credential: right, hosts: map[string]http.HandlerFunc{"r.example": challenge(`Bearer realm="https://169.254.169.254/token"`)}, fails: "blocked prefix", want: Unknown},
		"tokens without TLS":                     {credential: right, hosts: map[string]http.HandlerFunc{"r.example": challenge(`Bearer realm="http://203.0.113.7/token"`)}, fails: "http"},
		"sent on, without credentials":           {credential: right, hosts: map[string]http.HandlerFunc{"r.example": authenticated(redirected("https://store.example/v2/a/app/manifests/v1")), "store.example": manifest}, want: Yes, asked: tag + "\n" + tag + " Basic\nHEAD store.example/v2/a/app/manifests/v1"},
		"sent on to a host that wants its own":   {credential: right, hosts: map[string]http.HandlerFunc{"r.example": redirected("https://store.example/v2/a/app/manifests/v1"), "store.example": basic}, fails: "store.example answers 401", asked: tag + "\nHEAD store.example/v2/a/app/manifests/v1"},
		"sent on without TLS":                    {credential: right, hosts: map[string]http.HandlerFunc{"r.example": redirected("http://store.example/")}, fails: "without TLS", asked: tag},
		"sent on and on":                         {hosts: map[string]http.HandlerFunc{"r.example": redirected("https://r.example/")}, fails: "on and on"},
		"Docker Hub, a short name":               {image: "app", hosts: map[string]http.HandlerFunc{"registry-1.docker.io": status(200)}, want: Yes, asked: "HEAD registry-1.docker.io/v2/library/app/manifests/latest"},
		"an image by its ID":                     {image: strings.TrimPrefix(digest, "sha256:"), fails: "64-byte hexadecimal"},
		"an unknown way to show one's Secret":    {credential: right, hosts: map[string]http.HandlerFunc{"r.example": challenge("Negotiate")}, want: No, asked: tag},
		"an access token, of which none is made": {credential: Credential{RegistryToken: "for repository:a/app:pull"}, hosts: map[string]http.HandlerFunc{"r.example": bearer}, want: Yes, asked: tag + "\n" + tag + " Bearer"},
	} {
		t.Run(name, func(t *testing.T) {
			all := hosts(t, test.hosts)
			image := test.image
			if image == "" {
				image = "r.example/a/app:v1"
			}
			got, err := all.Ask(context.Background(), image, test.digest, test.credential)
			if got != test.want || (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%v, %v; want %v, %q", got, err, test.want, test.fails)
			}
			if test.asked != "" && all.requests() != test.asked {
				t.Errorf("asked:\n%s\nwant:\n%s", all.requests(), test.asked)
			}
			if err != nil && strings.Contains(err.Error(), right.Password) {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func challenge(header string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", header)
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func TestTimeout(t *testing.T) {
	held := make(chan struct{})
	slow := hosts(t, map[string]http.HandlerFunc{"r.example": func(http.ResponseWriter, *http.Request) { <-held }})
	defer close(held)
	slow.Timeout = 20 * time.Millisecond
	began := time.Now()
	if got, err := slow.Ask(context.Background(), "r.example/a/app:v1", "", right); got != Unknown || err == nil {
		t.Errorf("%v, %v", got, err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := slow.Ask(ctx, "r.example/a/app:v1", "", right); got != Unknown || err == nil {
		t.Errorf("cancelled: %v, %v", got, err)
	}
}

// Only the loopback and what is named are asked without TLS.
func TestPlainHTTP(t *testing.T) {
	c := Client{PlainHTTP: []string{"plain.example:5000"}}
	for image, want := range map[string]string{
		"127.0.0.1:5000/a/app:v1":        "http://127.0.0.1:5000/v2/a/app/manifests/v1",
		"[::1]:5000/a/app:v1":            "http://[::1]:5000/v2/a/app/manifests/v1",
		"localhost/a/app:v1":             "http://localhost/v2/a/app/manifests/v1",
		"plain.example:5000/a/app:v1":    "http://plain.example:5000/v2/a/app/manifests/v1",
		"plain.example/a/app:v1":         "https://plain.example/v2/a/app/manifests/v1",
		"127.0.0.1.example/a/app:v1":     "https://127.0.0.1.example/v2/a/app/manifests/v1",
		"localhost.example/a/app:v1":     "https://localhost.example/v2/a/app/manifests/v1",
		"10.0.0.1:5000/a/app:v1":         "https://10.0.0.1:5000/v2/a/app/manifests/v1",
		"r.example/a/b/app:v1@" + digest: "https://r.example/v2/a/b/app/manifests/" + digest,
	} {
		if got, err := c.manifestURL(image, ""); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v; want %s", image, got, err, want)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(basic))
	defer server.Close()
	if got, err := (&Client{}).Ask(context.Background(), server.Listener.Addr().String()+"/a/app:v1", "", right); got != Yes || err != nil {
		t.Errorf("loopback: %v, %v", got, err)
	}
}

// What one pod showed must not answer for the next.
func TestNothingIsKept(t *testing.T) {
	all := hosts(t, map[string]http.HandlerFunc{"r.example": bearer, "203.0.113.7": tokens})
	for _, ask := range []struct {
		with Credential
		want Answer
	}{{right, Yes}, {garbage, No}, {Credential{}, No}, {right, Yes}} {
		if got, err := all.Ask(context.Background(), "r.example/a/app:v1", "", ask.with); got != ask.want || err != nil {
			t.Errorf("%q: %v, %v; want %v", ask.with.Password, got, err, ask.want)
		}
	}
}
