package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const (
	superviseWord = "supervise"
	lookEvery     = time.Second
	dialTimeout   = time.Second
	stopGrace     = 5 * time.Second
)

// SuperviseAsked: this process was started to supervise a server. It returns the server's folder.
func SuperviseAsked(arguments []string) (Folder, bool) {
	if len(arguments) == 3 && arguments[1] == superviseWord {
		return Folder(arguments[2]), true
	}
	return "", false
}

// Supervise starts the server of a folder and waits for its end. It ends the server when its fleet has been gone for the
// lease, or when the folder was removed, so that a test leaves no process behind. It returns the exit code.
func Supervise(folder Folder) int {
	code, err := supervise(folder)
	if err != nil {
		fmt.Fprintf(os.Stderr, "{\"level\":\"error\",\"message\":%s}\n", strconv.Quote("supervisor: "+err.Error()))
	}
	return code
}

func supervise(folder Folder) (int, error) {
	lock, err := takeLock(folder)
	if err != nil {
		return 1, err
	}
	defer lock.Close()
	spec, err := folder.Spec()
	if err != nil || spec == nil {
		return 1, errors.Join(err, errors.New("nothing says what to start"))
	}
	// The server must end with its supervisor, and its "parent" is the thread that started it.
	runtime.LockOSThread()
	command := commandOf(folder, spec)
	_ = os.Remove(folder.ready()) // an earlier run's, which may have had this one's pid
	if err := command.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	if err := note(folder, command.Process.Pid); err != nil {
		_ = command.Process.Kill()
		return 1, err
	}
	return watch(folder, spec, command.Process, ended), nil
}

// takeLock allows one supervisor for a folder. The lock ends with its process.
func takeLock(folder Folder) (*os.File, error) {
	lock, err := os.OpenFile(folder.lock(), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s is supervised already", folder)
	}
	return lock, nil
}

func commandOf(folder Folder, spec *Spec) *exec.Cmd {
	arguments := []string{
		"--data-dir", folder.data(), "--coordinator", spec.Coordinator, "--join-token-file", folder.joinToken(),
		"--listen", listenAgain(folder, spec), "--name", spec.Name, "--region", spec.Region,
		"--failure-domain", spec.FailureDomain, "--shards", strconv.FormatInt(spec.Shards, 10),
	}
	if spec.CPU != nil {
		arguments = append(arguments, "--cpu", strconv.FormatFloat(*spec.CPU, 'f', -1, 64))
	}
	if spec.NetworkBytesPerS != nil {
		arguments = append(arguments, "--network-bytes-per-s", strconv.FormatInt(*spec.NetworkBytesPerS, 10))
	}
	if spec.StorageIOPerS != nil {
		arguments = append(arguments, "--storage-io-per-s", strconv.FormatInt(*spec.StorageIOPerS, 10))
	}
	if spec.AllowPlaintext {
		arguments = append(arguments, "--allow-plaintext")
	}
	command := exec.Command(spec.Binary, arguments...)
	command.Dir = string(folder)
	// Its own environment: every flag has a variable, and Terraform's environment holds credentials that a server must not get.
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "QUORATE_LOG=" + os.Getenv("QUORATE_LOG")}
	if spec.RedisURL != nil {
		command.Env = append(command.Env, "QUORATE_REDIS_URL="+*spec.RedisURL) // it holds a password, and arguments are public
	}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return command
}

// listenAgain is the server's former address, if any port is allowed and that one is free. Clients then still know the
// right address.
func listenAgain(folder Folder, spec *Spec) string {
	before, err := folder.readiness()
	if err != nil || before == nil {
		return spec.Listen
	}
	if _, port, err := net.SplitHostPort(spec.Listen); err != nil || port != "0" {
		return spec.Listen
	}
	probe, err := net.Listen("tcp", before.Address)
	if err != nil {
		return spec.Listen
	}
	probe.Close()
	return before.Address
}

func note(folder Folder, pid int) error {
	server, err := IdentityOf(pid)
	if err != nil {
		return fmt.Errorf("the server ended at once: %w", err)
	}
	me, err := IdentityOf(os.Getpid())
	if err != nil {
		return err
	}
	return write(folder.running(), running{server, me})
}

func watch(folder Folder, spec *Spec, server *os.Process, ended <-chan error) int {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	look := time.NewTicker(lookEvery)
	lastSeen := time.Now()
	for {
		select {
		case err := <-ended:
			return exitCode(err)
		case <-asked:
			return end(server, ended, "the supervisor was asked to end")
		case <-look.C:
			if _, err := os.Stat(folder.spec()); err != nil {
				return end(server, ended, "its folder is gone")
			}
			if answers(spec) {
				lastSeen = time.Now()
			} else if gone := time.Since(lastSeen); gone > time.Duration(spec.LeaseS)*time.Second {
				return end(server, ended, fmt.Sprintf("its fleet has not answered for %.0f s", gone.Seconds()))
			}
		}
	}
}

func answers(spec *Spec) bool {
	address := spec.Coordinator
	if spec.LeaseAddress != nil {
		address = *spec.LeaseAddress
	}
	connection, err := net.DialTimeout("tcp", address, dialTimeout)
	if err != nil {
		return false
	}
	connection.Close()
	return true
}

func end(server *os.Process, ended <-chan error, why string) int {
	fmt.Fprintf(os.Stderr, "{\"level\":\"info\",\"message\":%s}\n", strconv.Quote("supervisor: ending the server: "+why))
	_ = server.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return exitCode(err)
	case <-time.After(stopGrace):
	}
	_ = server.Kill()
	return exitCode(<-ended)
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	}
	return 1
}
