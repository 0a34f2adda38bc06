package waybill_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"waybill.dev/go"
)

func TestServe(t *testing.T) {
	directory := scratch(t)
	o := optionsIn(directory)
	s := open(t, o)
	socket := filepath.Join(o.Directory, "owner.sock")
	for _, wrong := range []waybill.ServeOptions{
		{Patience: -time.Second}, {Patience: time.Microsecond}, {Patience: 2 * time.Hour}, {Patience: 1 << 62},
		{Connections: -1}, {Connections: 1025}, {Connections: 1 << 40},
	} {
		wantCode(t, s.Serve(wrong), waybill.ErrInvalidArgument)
	}
	must(t, os.WriteFile(socket, []byte("in the way"), 0o600))
	wantCode(t, s.Serve(waybill.ServeOptions{}), waybill.ErrUnsafePath)
	must(t, os.Remove(socket))
	must(t, s.Serve(waybill.ServeOptions{Patience: time.Minute, Connections: 4}))
	wantCode(t, s.Serve(waybill.ServeOptions{}), waybill.ErrConflict)

	// The owner greets, and a client that says nothing does not keep Close from returning.
	c := value(net.Dial("unix", socket))
	defer c.Close()
	greeting := make([]byte, 8)
	_, err := io.ReadFull(c, greeting)
	errorIf(t, err != nil || string(greeting) != "waybill\x00", "%q, %v", greeting, err)
	must(t, s.Close())
	_, err = os.Lstat(socket)
	errorIf(t, !os.IsNotExist(err), "the socket is still there: %v", err)
	for name, closed := range closedStores(t) {
		t.Run(name, func(t *testing.T) {
			wantCode(t, closed.Serve(waybill.ServeOptions{}), waybill.ErrClosed)
			wantCode(t, second(closed.MakeBackup()), waybill.ErrClosed)
		})
	}
}

func TestMakeBackup(t *testing.T) {
	o := optionsIn(scratch(t))
	s := open(t, o)
	pull(t, s, image, ref, waybill.ImagePullCredentials{NodePodsAccessible: true})
	backup, err := s.MakeBackup()
	fatalIf(t, err != nil || backup.SchemaVersion != waybill.NewestSchema() || backup.Bytes == 0, "%+v, %v", backup, err)
	listed, err := waybill.ListBackups(o.Directory)
	errorIf(t, err != nil || len(listed) != 1 || listed[0] != backup, "%+v, %v", listed, err)
	intend(t, s, waybill.ImageCopy{Image: "other:v1"}) // it goes on

	file := filepath.Join(filepath.Dir(o.Directory), "written.mdb")
	written, err := s.WriteBackup(t.Context(), file)
	errorIf(t, err != nil || written.Path != file, "%+v, %v", written, err)
	wantCode(t, second(s.WriteBackup(t.Context(), file)), waybill.ErrInvalidArgument)
	ended, end := context.WithCancel(t.Context())
	end()
	wantCode(t, second(s.WriteBackup(ended, file+"2")), waybill.ErrInterrupted)
}
