package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"waybill.dev/go"
)

// An owner in this process, asked through its socket.
func TestAskALiveOwner(t *testing.T) {
	o, ctx := optionsIn(scratch(t)), t.Context()
	s := open(t, o)
	owner := waybill.NewOwner(o.Directory)
	wantError(t, second(owner.GetStatus(ctx, waybill.GetStatus{})), waybill.ErrNotFound)
	must(t, s.Serve())
	wantError(t, s.Serve(), waybill.ErrConflict)
	pullApp(t, s)

	decision, err := owner.MustPull(ctx, waybill.MustPull{Image: image, ImageRef: ref, Secrets: []waybill.Secret{secret}})
	errorIf(t, err != nil || decision.Pull, "%+v, %v", decision, err)
	claimed, err := owner.ClaimUserNamespace(ctx, waybill.ClaimUserNamespace{PodUID: podUID, HostUsers: new(false)})
	errorIf(t, err != nil || claimed.Mapping == nil, "%+v, %v", claimed, err)
	here, err := s.GetStatus(ctx, waybill.GetStatus{})
	must(t, err)
	there, err := owner.GetStatus(ctx, waybill.GetStatus{})
	errorIf(t, err != nil || there.StoreUUID != here.StoreUUID || there.OwnerPID != int64(os.Getpid()), "%+v, %v", there, err)
	begun, err := owner.BeginPull(ctx, waybill.BeginPull{Image: "other:1"})
	must(t, err)
	must(t, owner.EndPull(ctx, waybill.EndPull{Image: "other:1", Pull: begun.Pull, Outcome: waybill.OutcomeNothing}))
	ours, err := s.BeginPull(ctx, waybill.BeginPull{Image: "ours:1"})
	must(t, err)
	wantError(t, owner.EndPull(ctx, waybill.EndPull{Image: "ours:1", Pull: ours.Pull, Outcome: waybill.OutcomeNothing}), waybill.ErrConflict)
	err = second(owner.ClaimUserNamespace(ctx, waybill.ClaimUserNamespace{HostUsers: new(false)}))
	var e *waybill.Error
	errorIf(t, !errors.As(err, &e) || e.Name != "InvalidArgument" || e.Message == "", "%v", err)

	// Lists as long as a message may be.
	list, err := owner.BeginList(ctx)
	must(t, err)
	long := waybill.RevokeMissing{ServiceAccounts: []waybill.CredentialName{}, Token: list.Token, DryRun: true}
	for i := range 100_000 {
		long.Secrets = append(long.Secrets, waybill.CredentialName{Namespace: fmt.Sprintf("namespace-%d", i), Name: "registry", UID: secret.UID})
	}
	missing, err := owner.RevokeMissing(ctx, long)
	errorIf(t, err != nil || missing.Missing != 1, "%+v, %v", missing, err)
	long.Secrets = append(append(long.Secrets, long.Secrets...), long.Secrets...)
	wantError(t, second(owner.RevokeMissing(ctx, long)), waybill.ErrLimitExceeded)
	missing, err = s.RevokeMissing(ctx, long) // here there is no message
	errorIf(t, err != nil || missing.Missing != 1, "%+v, %v", missing, err)
	wantError(t, second(owner.MakeBackup(ctx, waybill.MakeBackup{File: filepath.Join(scratch(t), "written.mdb")})), waybill.ErrInvalidArgument)

	must(t, s.Close())
	wantError(t, owner.Flush(ctx), waybill.ErrNotFound)
}

func TestAContextEndsWhileTheOwnerIsAsked(t *testing.T) {
	o := optionsIn(scratch(t))
	s := open(t, o)
	must(t, s.Serve())
	for wait := time.Microsecond; wait < 100*time.Millisecond; wait *= 2 {
		ctx, stop := context.WithTimeout(t.Context(), wait)
		_, err := waybill.NewOwner(o.Directory).Verify(ctx)
		stop()
		errorIf(t, err != nil && !errors.Is(err, context.DeadlineExceeded), "after %v: %v", wait, err)
		errorIf(t, err != nil && !errors.Is(err, waybill.ErrUnavailable), "after %v: %v", wait, err)
	}
	must(t, second(s.Verify(t.Context())))
}
