package waybill_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"waybill.dev/go"
)

// owner serves one connection after the other by `answer`, which gets a request and may close.
func owner(t *testing.T, directory string, answer func(c net.Conn, request string)) *waybill.Owner {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(directory, "owner.sock"))
	if err != nil {
		t.Fatal(err)
	}
	serve(t, listener, answer)
	return waybill.NewOwner(directory)
}

func serve(t *testing.T, listener net.Listener, answer func(c net.Conn, request string)) {
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			request, _ := bufio.NewReader(c).ReadString(0)
			answer(c, request)
			c.Close()
		}
	}()
}

func says(text string) func(net.Conn, string) {
	return func(c net.Conn, _ string) { _, _ = c.Write([]byte(text + "\x00")) }
}

func wantError(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, one := range want {
		if !errors.Is(err, one) {
			t.Errorf("%v, not %v", err, one)
		}
	}
}

// answering is an owner that says what is sent to it first.
func answering(t *testing.T) (*waybill.Owner, chan<- string) {
	answers := make(chan string, 1)
	return owner(t, t.TempDir(), func(c net.Conn, request string) { says(<-answers)(c, request) }), answers
}

func failsWith[A any](_ A, err error) error { return err }

func TestARequestAndItsAnswer(t *testing.T) {
	requests := make(chan string, 1)
	o := owner(t, t.TempDir(), func(c net.Conn, request string) {
		requests <- request
		says(`{"parameters": {"mapping": {"hostId": 589824, "containerId": 0, "length": 65536}, "later": [1]}}`)(c, request)
	})
	answer, err := o.ClaimUserNamespace(t.Context(), waybill.ClaimUserNamespace{PodUID: "pod-1", HostUsers: new(false)})
	if err != nil || answer.Mapping == nil || *answer.Mapping != (waybill.IdMapping{HostID: 589824, Length: 65536}) {
		t.Errorf("%+v, %v", answer, err)
	}
	got := <-requests
	if want := `{"method":"dev.waybill.ClaimUserNamespace","parameters":{"podUid":"pod-1","hostUsers":false}}` + "\x00"; got != want {
		t.Errorf("asked\n%q, not\n%q", got, want)
	}
}

// Lists that must be given are never null, at any depth; optional ones and times are left out. A list that was never
// made must not count as one without entries, and two texts that are not UTF-8 not as one.
func TestTheParametersOfCalls(t *testing.T) {
	var got string
	calls, ctx := waybill.Calls{Door: func(_ context.Context, _ string, parameters []byte) ([]byte, error) {
		got = string(parameters)
		return []byte("{}"), nil
	}}, t.Context()
	none, names := []string{}, []waybill.CredentialName{}
	const refused = ""
	for _, each := range []struct {
		want string
		ask  func() error
	}{
		{`{"images":[],"complete":false}`, func() error { return failsWith(calls.ClassifyImages(ctx, waybill.ClassifyImages{})) }},
		{`{"record":{"imageRef":"sha256:1","credentials":{}}}`, func() error {
			return calls.PutImage(ctx, waybill.PutImage{Record: waybill.PulledRecord{ImageRef: "sha256:1"}})
		}},
		{`{"reason":"","images":[]}`, func() error {
			return failsWith(calls.AcceptLoss(ctx, waybill.AcceptLoss{Images: []waybill.ListedImage{}}))
		}},
		{`{}`, func() error { return calls.Flush(ctx) }},
		{`{"imageRef":"r","secrets":[]}`, func() error {
			return failsWith(calls.Explain(ctx, waybill.Explain{ImageRef: "r", Secrets: []waybill.Secret{}}))
		}},
		{`{"imageRef":"r"}`, func() error { return failsWith(calls.Explain(ctx, waybill.Explain{ImageRef: "r"})) }},
		{`{"existing":[],"running":[],"token":""}`, func() error {
			return failsWith(calls.CleanUpUserNamespaces(ctx, waybill.CleanUpUserNamespaces{Existing: none, Running: none}))
		}},
		{refused, func() error {
			return failsWith(calls.CleanUpUserNamespaces(ctx, waybill.CleanUpUserNamespaces{Existing: none}))
		}},
		{refused, func() error {
			return failsWith(calls.CleanUpUserNamespaces(ctx, waybill.CleanUpUserNamespaces{Running: none}))
		}},
		{`{"secrets":[],"serviceAccounts":[],"token":""}`, func() error {
			return failsWith(calls.RevokeMissing(ctx, waybill.RevokeMissing{Secrets: names, ServiceAccounts: names}))
		}},
		{refused, func() error { return failsWith(calls.RevokeMissing(ctx, waybill.RevokeMissing{Secrets: names})) }},
		{refused, func() error {
			return failsWith(calls.RevokeMissing(ctx, waybill.RevokeMissing{ServiceAccounts: names}))
		}},
		{refused, func() error { return failsWith(calls.BeginPull(ctx, waybill.BeginPull{Image: "a\xff"})) }},
		{refused, func() error { return failsWith(calls.BeginPull(ctx, waybill.BeginPull{Image: `\` + "\xff"})) }},
		{`{"image":"a\\ufffd"}`, func() error { return failsWith(calls.BeginPull(ctx, waybill.BeginPull{Image: `a\ufffd`})) }},
		{`{"image":"a` + "\ufffd" + `"}`, func() error { return failsWith(calls.BeginPull(ctx, waybill.BeginPull{Image: "a\ufffd"})) }},
		{`{"image":"\\\\ufffd"}`, func() error { return failsWith(calls.BeginPull(ctx, waybill.BeginPull{Image: `\\ufffd`})) }},
	} {
		got = ""
		if err := each.ask(); got != each.want || (each.want == refused) != errors.Is(err, waybill.ErrInvalidArgument) {
			t.Errorf("%s, not %s; %v", got, each.want, err)
		}
	}
}

func TestErrorsOfAnOwner(t *testing.T) {
	o, answers := answering(t)
	flush := func(text string) *waybill.Error {
		t.Helper()
		answers <- text
		var e *waybill.Error
		if !errors.As(o.Flush(t.Context()), &e) {
			t.Fatalf("no error of %q", text)
		}
		return e
	}
	e := flush(`{"error": "dev.waybill.LimitExceeded", "parameters": {"message": "m", "hint": "h", "retryAfterMs": 1500, "new": 1}}`)
	if wantError(t, e, waybill.ErrLimitExceeded); e.Error() != "m; h" || e.RetryAfter() != 1500*time.Millisecond {
		t.Errorf("%+v", e)
	}
	for text, want := range map[string]error{
		`{"error": "org.varlink.service.MethodNotFound", "parameters": {"method": "dev.waybill.Flush"}}`: waybill.ErrInvalidArgument,
		`{"error": "org.varlink.service.InvalidParameter"}`:                                              waybill.ErrInvalidArgument,
		`{"error": "org.varlink.service.PermissionDenied", "parameters": {}}`:                            waybill.ErrUnsafePath,
	} {
		e = flush(text)
		if wantError(t, e, want); !strings.HasSuffix(e.Message, "nothing was changed") || e.Hint == "" {
			t.Errorf("%+v", e)
		}
	}
	for _, text := range []string{`{"error": "dev.waybill.Conflict"}`, `{"error": "dev.waybill.Conflict", "parameters": {"message": ""}}`} {
		if e = flush(text); e.Name != "Conflict" || e.Message == "" {
			t.Errorf("%s: %+v", text, e)
		}
	}
	for _, text := range []string{`no JSON`, `{"parameters": [`, ``, `{}`, `null`, `{"parameters": null}`, `{"parameters": []}`, `{"error": "com.example.Error", "parameters": {}}`} {
		wantError(t, flush(text), waybill.ErrOutcomeUnknown)
	}
	if (&waybill.Error{Name: "Closed"}).Error() != "waybill: Closed" || errors.Is(waybill.ErrClosed, waybill.ErrConflict) {
		t.Error("an error without words")
	}
}

// The caller learns whether the request may have been carried out.
func TestAnOwnerThatDoesNotAnswer(t *testing.T) {
	directory := t.TempDir()
	nobody := waybill.NewOwner(directory)
	wantError(t, nobody.Flush(t.Context()), waybill.ErrNotFound)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(directory, "owner.sock")})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close() // as by a kill
	wantError(t, nobody.Flush(t.Context()), waybill.ErrNotFound)
	os.Remove(filepath.Join(directory, "owner.sock"))

	asked := make(chan struct{}, 1)
	var lives atomic.Bool
	o := owner(t, directory, func(c net.Conn, _ string) {
		if !lives.Load() {
			return
		}
		asked <- struct{}{}
		_, _ = c.Read(make([]byte, 1)) // until the client leaves
	})
	// Of each other call the interface's text says whether it only reads (store/interface_test.go).
	wantError(t, o.Flush(t.Context()), waybill.ErrOutcomeUnknown)
	wantError(t, failsWith(o.GetStatus(t.Context(), waybill.GetStatus{})), waybill.ErrUnavailable)
	wantError(t, failsWith(o.Revoke(t.Context(), waybill.Revoke{DryRun: true})), waybill.ErrUnavailable)
	wantError(t, failsWith(o.Door(t.Context(), "Later", nil)), waybill.ErrOutcomeUnknown)
	lives.Store(true)
	reason := errors.New("the node shuts down")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(reason)
	}()
	wantError(t, o.Flush(ctx), waybill.ErrOutcomeUnknown, reason)
	wantError(t, o.Flush(ctx), waybill.ErrUnavailable, reason) // ended before it began
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	wantError(t, o.Flush(short), waybill.ErrOutcomeUnknown, context.DeadlineExceeded)
}

func TestBoundsOfMessages(t *testing.T) {
	var asked atomic.Bool
	o := owner(t, t.TempDir(), func(c net.Conn, _ string) {
		asked.Store(true)
		long := make([]byte, 17<<20)
		for i := range long {
			long[i] = ' '
		}
		_, _ = c.Write(long)
	})
	_, err := o.ParseImage(t.Context(), waybill.ParseImage{Image: strings.Repeat("x", 16<<20)})
	wantError(t, err, waybill.ErrLimitExceeded)
	if asked.Load() {
		t.Error("a request of more than 16 MiB was sent")
	}
	wantError(t, o.Flush(t.Context()), waybill.ErrOutcomeUnknown) // of an answer without end
}

// What is not said, and each error, is "pull".
func TestOnlyAPlainAnswerSaysUse(t *testing.T) {
	o, answers := answering(t)
	for text, want := range map[string]error{
		`{"parameters": {}}`:                        nil,
		`{"parameters": {"pull": null}}`:            nil,
		`{"parameters": {"pull": true}}`:            nil,
		`{"parameters": null}`:                      waybill.ErrUnavailable,
		`{"parameters": {"pull": 0}}`:               waybill.ErrUnavailable,
		`{"parameters": {"pull": false, "why": 1}}`: waybill.ErrUnavailable,
		`{"parameters": {"pull": false}`:            waybill.ErrUnavailable,
		`{}`:                                        waybill.ErrUnavailable,
		`null`:                                      waybill.ErrUnavailable,
		``:                                          waybill.ErrUnavailable,
		`{"error": "dev.waybill.Damaged"}`:          waybill.ErrDamaged,
		`{"error": "org.varlink.service.MethodNotFound"}`: waybill.ErrInvalidArgument,
	} {
		answers <- text
		decision, err := o.MustPull(t.Context(), waybill.MustPull{Image: "a"})
		if !decision.Pull || !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v", text, decision, err)
		}
	}
	answers <- `{"parameters": {"pull": false, "why": "w", "later": 1}}`
	if decision, err := o.MustPull(t.Context(), waybill.MustPull{}); err != nil || decision != (waybill.PullDecision{Why: "w"}) {
		t.Errorf("%+v, %v", decision, err)
	}
	if decision, err := (waybill.Calls{}).MustPull(t.Context(), waybill.MustPull{}); !decision.Pull || err == nil {
		t.Errorf("%+v, %v", decision, err)
	}
	if decision, err := o.MustPull(t.Context(), waybill.MustPull{Image: "\xff"}); !decision.Pull || err == nil {
		t.Errorf("%+v, %v", decision, err)
	}

	for text, want := range map[string]waybill.EnsureImageAnswer{
		`{"parameters": {"action": "Pull", "decision": {}}}`:                                  {Action: "Pull", Decision: &waybill.PullDecision{Pull: true}},
		`{"parameters": {"action": "UsePresent", "decision": {"pull": false}}}`:               {Action: "UsePresent", Decision: &waybill.PullDecision{}},
		`{"parameters": {"decision": null}}`:                                                  {},
		`{"parameters": {"action": "UsePresent", "decision": {"pull": false}, "message": 1}}`: {},
		`{"parameters": null}`: {},
	} {
		answers <- text
		if got, _ := o.EnsureImage(t.Context(), waybill.EnsureImage{}); got.Action != want.Action || (got.Decision == nil) != (want.Decision == nil) ||
			got.Decision != nil && *got.Decision != *want.Decision {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// An owner that does not take the request may say why.
func TestTheLastWordOfAnOwner(t *testing.T) {
	directory := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(directory, "owner.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	words := make(chan string, 1)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(<-words))
			c.Close()
		}
	}()
	long := waybill.ParseImage{Image: strings.Repeat("x", 8<<20)} // more than a socket takes
	for word, want := range map[string]error{
		`{"error": "dev.waybill.LimitExceeded", "parameters": {"message": "m"}}` + "\x00": waybill.ErrLimitExceeded,
		`{"error": "org.varlink.service.PermissionDenied", "parameters": {}}` + "\x00":    waybill.ErrUnsafePath,
		`{"parameters": {"name": "no answer to a part"}}` + "\x00":                        waybill.ErrUnavailable,
		`{"error": "dev.waybill.LimitExc`:                                                 waybill.ErrUnavailable,
		``:                                                                                waybill.ErrUnavailable,
	} {
		words <- word
		if _, err := waybill.NewOwner(directory).ParseImage(t.Context(), long); !errors.Is(err, want) {
			t.Errorf("%q: %v", word, err)
		}
	}
}

// Whoever could write the directory could answer.
func TestWhoAnswers(t *testing.T) {
	var asked atomic.Bool
	answer := func(c net.Conn, request string) {
		asked.Store(request != "")
		says(`{"parameters": {}}`)(c, request)
	}
	for what, spoil := range map[string]func(directory string) error{
		"writable by its group": func(directory string) error { return os.Chmod(directory, 0o770) },
		"writable by all":       func(directory string) error { return os.Chmod(directory, 0o707) },
		"no directory": func(directory string) error {
			return errors.Join(os.RemoveAll(directory), os.WriteFile(directory, nil, 0o600))
		},
		"a link": func(directory string) error {
			return errors.Join(os.Rename(directory, directory+"-real"), os.Symlink(directory+"-real", directory))
		},
		"no socket": func(directory string) error {
			path := filepath.Join(directory, "owner.sock")
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		},
		"a link to a socket": func(directory string) error {
			path := filepath.Join(directory, "owner.sock")
			return errors.Join(os.Rename(path, path+"-real"), os.Symlink(path+"-real", path))
		},
		"another user's directory": func(directory string) error { return os.Chown(directory, 65534, -1) },
		"another user's socket":    func(directory string) error { return os.Chown(filepath.Join(directory, "owner.sock"), 65534, -1) },
	} {
		t.Run(what, func(t *testing.T) {
			directory := filepath.Join(t.TempDir(), "store")
			if err := os.Mkdir(directory, 0o700); err != nil {
				t.Fatal(err)
			}
			o := owner(t, directory, answer)
			if err := o.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			asked.Store(false)
			if err := spoil(directory); errors.Is(err, os.ErrPermission) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			wantError(t, o.Flush(t.Context()), waybill.ErrUnsafePath)
			wantError(t, waybill.NewOwner(directory+"/").Flush(t.Context()), waybill.ErrUnsafePath)
			if asked.Load() {
				t.Error("it was asked")
			}
		})
	}

	// A thread of another user listens on a socket of this one.
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	directory, listens := t.TempDir(), make(chan error)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Join(directory, "owner.sock")})
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		runtime.LockOSThread() // it ends with the goroutine
		if _, _, no := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534); no != 0 {
			listens <- no
			return
		}
		listens <- syscall.Listen(fd, 1)
	}()
	if err := <-listens; err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "owner.sock")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, listener, answer)
	asked.Store(false)
	wantError(t, waybill.NewOwner(directory).Flush(t.Context()), waybill.ErrUnsafePath)
	if asked.Load() {
		t.Error("it was asked")
	}
}

func TestALongPath(t *testing.T) {
	directory := filepath.Join(t.TempDir(), strings.Repeat("long", 50))
	if err := os.MkdirAll(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	wantError(t, waybill.NewOwner(directory).Flush(t.Context()), waybill.ErrNotFound)
	t.Chdir(directory)
	owner(t, ".", says(`{"parameters": {}}`))
	if err := waybill.NewOwner(directory).Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCallsWithoutADoor(t *testing.T) {
	wantError(t, waybill.Calls{}.Flush(t.Context()), waybill.ErrClosed)
	calls := waybill.Calls{Door: func(context.Context, string, []byte) ([]byte, error) { return []byte(`{"pull": "x"}`), nil }}
	var wrong *json.UnmarshalTypeError
	if _, err := calls.BeginPull(t.Context(), waybill.BeginPull{}); !errors.As(err, &wrong) || !errors.Is(err, waybill.ErrOutcomeUnknown) {
		t.Errorf("an answer of another type: %v", err)
	}
}
