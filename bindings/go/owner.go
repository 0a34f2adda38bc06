// Package waybill has the calls of a node's waybill store, and asks the process that owns it: the
// kubelet, or waybill guard. It is plain Go: package waybill.dev/go/store opens a store by itself.
//
//	owner := waybill.NewOwner("/var/lib/kubelet/waybill")
//	answer, err := owner.ClaimUserNamespace(ctx, waybill.ClaimUserNamespace{PodUID: uid, HostUsers: new(false)})
package waybill

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Calls has a method for each call. An Owner has them, and so has a store.Store.
type Calls struct {
	// Door makes the call of that name; parameters and answer are JSON objects. nil: ErrClosed.
	Door func(ctx context.Context, name string, parameters []byte) ([]byte, error)
}

func call[A any](ctx context.Context, c Calls, name string, in any) (answer A, err error) {
	if c.Door == nil {
		return answer, &Error{Name: "Closed", Message: "the store was never opened"}
	}
	parameters, err := parametersOf(in)
	if err != nil {
		return answer, err
	}
	text, err := c.Door(ctx, name, parameters)
	if err != nil {
		return answer, err
	}
	if err = json.Unmarshal(text, &answer); err == nil && !bytes.HasPrefix(text, []byte("{")) {
		err = errors.New("it is no object")
	}
	if err != nil {
		var nothing A
		return nothing, lost("the answer to "+name+" can't be read", name, parameters, err)
	}
	return answer, nil
}

func none(_ struct{}, err error) error { return err }

// parametersOf refuses what json.Marshal would change: two names that are not UTF-8 would become one.
func parametersOf(in any) ([]byte, error) {
	whole := reflect.New(reflect.TypeOf(in)).Elem()
	whole.Set(reflect.ValueOf(in))
	fillLists(whole)
	text, err := json.Marshal(whole.Interface())
	if err != nil { // a time after the year 9999
		err = &Error{Name: "InvalidArgument", Message: err.Error() + "; nothing was changed", cause: err}
	}
	replaced := []byte(`\ufffd`)
	if err == nil && bytes.Contains(text, replaced) && bytes.Contains(bytes.ReplaceAll(text, []byte(`\\`), nil), replaced) {
		err = &Error{Name: "InvalidArgument", Message: "a text of the parameters is not UTF-8; nothing was changed"}
	}
	return text, err
}

// fillLists makes nil lists that must be given empty ones, since null is none.
func fillLists(of reflect.Value) {
	for i := range of.NumField() {
		field, tag := of.Field(i), of.Type().Field(i).Tag.Get("json")
		switch kind := field.Kind(); {
		case kind == reflect.Struct && of.Type().Field(i).Type != reflect.TypeFor[time.Time]():
			fillLists(field)
		case strings.Contains(tag, ",") || kind != reflect.Slice && kind != reflect.Map || !field.IsNil():
		case kind == reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 0, 0))
		default:
			field.Set(reflect.MakeMap(field.Type()))
		}
	}
}

// Owner is the process that owns a store, and serves. Each call makes a connection of its own. Beside
// the errors of the call: ErrNotFound (nobody serves), ErrUnavailable (nothing was changed: try again),
// ErrOutcomeUnknown (a change was sent, and ctx ended, or the owner did, before an answer came),
// ErrUnsafePath (the owner is neither root nor this user, or the directory or the socket is not this
// user's own). An error wraps why ctx ended.
type Owner struct {
	Calls
}

// NewOwner does not connect. directory is the store's.
func NewOwner(directory string) *Owner {
	return &Owner{Calls{func(ctx context.Context, name string, parameters []byte) ([]byte, error) {
		return ask(ctx, directory, name, parameters)
	}}}
}

const mostBytes = 16 << 20 // of a message

func ask(ctx context.Context, directory, name string, parameters []byte) ([]byte, error) {
	request, err := json.Marshal(struct {
		Method     string          `json:"method"`
		Parameters json.RawMessage `json:"parameters"`
	}{"dev.waybill." + name, parameters})
	if err != nil {
		return nil, &Error{Name: "InvalidArgument", Message: "the parameters of " + name + " are no JSON; nothing was changed", cause: err}
	}
	if len(request) > mostBytes {
		return nil, &Error{Name: "LimitExceeded", Message: "the request has more than 16 MiB; nothing was changed", Hint: "send a part at a time"}
	}
	owner := "the owner of " + directory
	connection, err := connect(ctx, directory)
	var known *Error
	switch {
	case err == nil:
	case errors.As(err, &known):
		return nil, known
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return nil, &Error{Name: "NotFound", Message: "no owner of " + directory + " serves " + socketName + "; nothing was changed",
			Hint: "start the owner with Store.Serve"}
	case errors.Is(err, fs.ErrPermission):
		return nil, unsafePath(err.Error()+"; nothing was changed", "run as the user of that path")
	default:
		return nil, unavailable("can't connect to "+owner, ended(ctx, err))
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { _ = connection.SetDeadline(time.Unix(1, 0)) })()
	if n, err := connection.Write(append(request, 0)); n <= len(request) { // a part of a request is never acted on
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) { // it may have said why
			text, _ := receive(connection)
			if _, refusal := readReply(text); errors.As(refusal, &known) {
				return nil, known
			}
		}
		return nil, unavailable(owner+" did not take the request", ended(ctx, err))
	}
	text, err := receive(connection)
	if err != nil {
		return nil, lost(owner+" did not answer", name, parameters, ended(ctx, err))
	}
	answer, err := readReply(text)
	if err != nil && !errors.As(err, &known) {
		return nil, lost(owner+" gave an answer that can't be read", name, parameters, err)
	}
	return answer, err
}

// ended is why ctx ended, or else err.
func ended(ctx context.Context, err error) error { return cmp.Or(context.Cause(ctx), err) }

func unavailable(what string, why error) error {
	return &Error{Name: "Unavailable", Message: what + ": " + why.Error() + "; nothing was changed", Hint: "try again", cause: why}
}

func unsafePath(message, hint string) error {
	return &Error{Name: "UnsafePath", Message: message, Hint: hint}
}

// lost is what a call fails with that was sent, and whose answer is not there.
func lost(what, name string, parameters []byte, why error) error {
	var of struct {
		DryRun bool `json:"dryRun"`
	}
	if slices.Contains(reads, name) || json.Unmarshal(parameters, &of) == nil && of.DryRun {
		return unavailable(what, why)
	}
	return &Error{Name: "OutcomeUnknown", Message: what + ": " + why.Error() + ": the change may have happened, or may still happen",
		Hint: "look at the store to find out, then try again", cause: why}
}

// receive returns a message without its zero byte.
func receive(connection net.Conn) ([]byte, error) {
	text, err := bufio.NewReaderSize(io.LimitReader(connection, mostBytes+1), 16<<10).ReadBytes(0)
	return bytes.TrimSuffix(text, []byte{0}), err
}

// readReply returns an answer's parameters, the *Error that it says, or another error: it can't be read.
func readReply(text []byte) ([]byte, error) {
	var reply struct {
		Error      string          `json:"error"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return nil, err
	}
	if reply.Error == "" {
		return reply.Parameters, nil
	}
	if name, ours := strings.CutPrefix(reply.Error, "dev.waybill."); ours {
		refused := &Error{}
		if json.Unmarshal(reply.Parameters, refused) != nil || refused.Message == "" {
			refused.Message = fmt.Sprintf("%s: %s", reply.Error, reply.Parameters)
		}
		refused.Name = name
		return nil, refused
	}
	switch name, varlinks := strings.CutPrefix(reply.Error, "org.varlink.service."); {
	case !varlinks:
		return nil, fmt.Errorf("it is the error %q", reply.Error)
	case name == "PermissionDenied":
		return nil, unsafePath("the owner answers only root and its own user; nothing was changed", "run as one of them")
	case name == "InvalidParameter":
		return nil, &Error{Name: "InvalidArgument", Message: "the owner does not take these parameters; nothing was changed",
			Hint: "correct them: GetInterfaceDescription has their description"}
	default:
		return nil, &Error{Name: "InvalidArgument", Message: "the owner is of a version that does not know the call; nothing was changed",
			Hint: "use the version of waybill that the owner uses"}
	}
}

const socketName = "owner.sock"

// connect makes sure that root or this user serves, and that no other user could have put the socket there. It goes
// through /proc if the path is too long for a socket's address.
func connect(ctx context.Context, directory string) (net.Conn, error) {
	path := filepath.Join(directory, socketName)
	if err := cmp.Or(mustBeOurs(filepath.Clean(directory), fs.ModeDir), mustBeOurs(path, fs.ModeSocket)); err != nil {
		return nil, err
	}
	address := path
	if len(path) >= len(syscall.RawSockaddrUnix{}.Path) {
		folder, err := os.OpenFile(directory, syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return nil, err
		}
		defer folder.Close()
		address = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName)
	}
	connection, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, err
	}
	peer, err := peerOf(connection)
	if err == nil && peer != 0 && peer != os.Geteuid() {
		err = unsafePath(fmt.Sprintf("%s is served by user %d, neither root nor user %d; nothing was sent to it", path, peer, os.Geteuid()),
			"find out who that is")
	}
	if err != nil {
		connection.Close()
		return nil, err
	}
	return connection, nil
}

func peerOf(connection net.Conn) (user int, err error) {
	socket, err := connection.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *syscall.Ucred
	failed := socket.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = cmp.Or(failed, err); err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}

// mustBeOurs refuses what is no socket or directory of this user's, and what others can write into.
func mustBeOurs(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	user := int(info.Sys().(*syscall.Stat_t).Uid)
	switch {
	case info.Mode().Type() != kind:
		return unsafePath(path+" is not a "+map[fs.FileMode]string{fs.ModeDir: "directory", fs.ModeSocket: "socket"}[kind]+"; nothing was sent to it",
			"name the store's directory; find out who put that there")
	case user != os.Geteuid():
		return unsafePath(fmt.Sprintf("%s belongs to user %d, not to user %d who runs this; nothing was sent to it", path, user, os.Geteuid()),
			fmt.Sprintf("run as user %d", user))
	case kind == fs.ModeDir && info.Mode().Perm()&0o022 != 0:
		return unsafePath(path+" can be written by its group or by everybody; nothing was sent to it", "chmod 0700 "+path)
	}
	return nil
}
