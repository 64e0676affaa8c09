/** A server as somebody may have written it. */
interface Started {
  readonly command?: unknown
  readonly args?: unknown
}

/** `.`, `../x`, `server.py`: words that mean something else in another folder. */
const relative = /^\.{1,2}([/\\]|$)|^(?![/\\~$-]|[A-Za-z]:[/\\]|[a-z]+:\/\/|@).*\.(?:[cm]?[jt]s|py|sh|rb|jar|exe)$/

/** Whether what a program does may depend on the folder it is started in, as far as its words show. */
export const dependsOnFolder = ({ command, args }: Started): boolean =>
  [command, ...(Array.isArray(args) ? args : [])].some((word) => typeof word === 'string' && relative.test(word))
