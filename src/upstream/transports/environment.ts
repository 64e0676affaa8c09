/** Where the certificates are that this machine trusts: behind a proxy that looks inside TLS nothing is fetched without. */
const trust = 'NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE'

/** What a program needs to find its way, and nothing that may be a secret. */
const passedOn: Readonly<Record<'posix' | 'windows', RegExp>> = {
  posix: new RegExp(`^(HOME|LANG|LANGUAGE|LC_[A-Z]+|LOGNAME|PATH|SHELL|TERM|TMPDIR|TZ|USER|XDG_[A-Z_]+|${trust})$`),
  windows: new RegExp(
    `^(APPDATA|COMSPEC|HOMEDRIVE|HOMEPATH|LOCALAPPDATA|PATH|PATHEXT|PROCESSOR_ARCHITECTURE|PROGRAM(DATA|FILES(\\(X86\\))?)|SYSTEMDRIVE|SYSTEMROOT|TEMP|TMP|USERNAME|USERPROFILE|WINDIR|${trust})$`,
    'i',
  ),
}

/** The environment of a child process: a few variables of ours, then what its configuration says. */
export function childEnvironment(
  configured: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const pattern = passedOn[platform === 'win32' ? 'windows' : 'posix']
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(ours)) {
    // A value that begins so is an exported shell function: code, not a setting.
    if (value !== undefined && pattern.test(name) && !value.startsWith('()')) environment[name] = value
  }
  return { ...environment, ...configured }
}
