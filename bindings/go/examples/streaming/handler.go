package main

import (
	"errors"
	"log"
	"net/http"

	"waybill.dev/go"
)

// openOnce serves GET and POST of /{kind}/{token}, the URLs that CRI's streaming servers give out. It
// uses the token up before anything else happens, and hands the request to stream. Whatever is wrong
// with a token, the answer is the same 404.
func openOnce(store *waybill.StreamingStore, stream func(http.ResponseWriter, *http.Request, waybill.StreamingRequest)) http.Handler {
	mux := http.NewServeMux()
	for _, kind := range []waybill.StreamKind{waybill.StreamExec, waybill.StreamAttach, waybill.StreamPortForward} {
		handle := func(w http.ResponseWriter, r *http.Request) {
			// ServeMux takes HEAD for GET, and a probe should use nothing up.
			if r.Method == http.MethodHead {
				http.Error(w, "use GET or POST", http.StatusMethodNotAllowed)
				return
			}
			token := r.PathValue("token")
			request, err := store.Consume(token, kind)
			switch {
			case err == nil:
				stream(w, r, request)
			case errors.Is(err, waybill.ErrNotFound):
				http.NotFound(w, r)
			default:
				// The ID names the token in a log; the token itself would open its stream.
				log.Printf("%v %s: %v", kind, waybill.StreamTokenID(token), err)
				http.Error(w, "the stream can't be opened now", http.StatusInternalServerError)
			}
		}
		mux.HandleFunc("GET /"+kind.String()+"/{token}", handle)
		mux.HandleFunc("POST /"+kind.String()+"/{token}", handle)
	}
	return mux
}

// refuse tells a CRI client why its call prepared no stream, as kubelets expect it: 429 with
// Retry-After if as many wait as may.
func refuse(w http.ResponseWriter, err error) {
	var e *waybill.Error
	switch {
	case errors.As(err, &e) && e.RetryAfter > 0:
		w.Header().Set("Retry-After", wholeSeconds(e.RetryAfter))
		http.Error(w, e.Message, http.StatusTooManyRequests)
	case errors.Is(err, waybill.ErrInvalidArgument), errors.Is(err, waybill.ErrLimitExceeded):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		log.Print(err)
		http.Error(w, "the stream can't be prepared now", http.StatusInternalServerError)
	}
}
