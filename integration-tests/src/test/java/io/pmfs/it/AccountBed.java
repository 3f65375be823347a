package io.pmfs.it;

import java.nio.file.Path;
import java.util.List;

/**
 * An account of its own, and an installation whose program lies where all users get to; skips the
 * test where these cannot be made. Close removes both; if one cannot be made, its directories are
 * removed at the end of the process.
 */
final class AccountBed implements AutoCloseable {
  private final Scratch code;
  private final Installation pmfs;
  private final Account user;

  private AccountBed(Scratch code, Installation pmfs, Account user) {
    this.code = code;
    this.pmfs = pmfs;
    this.user = user;
  }

  /** Root runs pmfs, and the user's home is that of the installation. */
  static AccountBed ofRoot() {
    requireAccounts();
    Scratch code = new Scratch();
    Installation pmfs = new Installation(Installation.launcherForAll(code), List.of());
    return new AccountBed(code, pmfs, new Account(pmfs.directory("home").toString()));
  }

  /** The user runs pmfs, and may mount. */
  static AccountBed ofUser() {
    requireAccounts();
    Machine.requireCommand("fusermount3");
    Scratch code = new Scratch();
    Path launcher = Installation.launcherForAll(code);
    Account user = new Account(code.directory("home").toString());
    try {
      user.openFuse();
      Installation pmfs = new Installation(launcher, user.prefix());
      pmfs.giveTo(user.uid(), user.gid());
      return new AccountBed(code, pmfs, user);
    } catch (RuntimeException | Error e) {
      user.close();
      throw e;
    }
  }

  private static void requireAccounts() {
    Machine.requireRoot();
    Machine.requireFuse();
    Machine.requireCommand("useradd");
    Machine.requireCommand("setpriv");
  }

  Installation pmfs() {
    return pmfs;
  }

  Account user() {
    return user;
  }

  /** Where the launcher and its scripts are. */
  Path scripts() {
    return code.root().resolve("scripts");
  }

  @Override
  public void close() {
    try {
      pmfs.close();
    } finally {
      user.close(); // no process is left
      code.close();
    }
  }
}
