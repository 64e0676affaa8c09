import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/** Longer than any key or certificate: whatever is larger was named by mistake. */
const maxBytes = 64 * 1024

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'this symbolic link leads back to itself',
}

/**
 * Reads a secret that has a file to itself, without the line break at its end. What others on this machine could read
 * is no secret, so such a file is refused; what is wrong never says a word of the content.
 */
export function readSecretFile(path: string): { readonly text: string } | { readonly fault: string } {
  let descriptor: number
  try {
    // A pipe would never open otherwise.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code ?? ''
    return { fault: `the file ${path} cannot be read: ${reasons[code] ?? code}` }
  }
  try {
    const found = fstatSync(descriptor)
    if (!found.isFile()) return { fault: `${path} is not a regular file` }
    if (found.size > maxBytes) return { fault: `the file ${path} is larger than 64 KiB, which no secret is` }
    if (process.platform !== 'win32' && (found.mode & 0o077) !== 0) {
      const mode = (found.mode & 0o777).toString(8)
      return { fault: `the file ${path} is open to others (mode ${mode}); chmod 600 it` }
    }
    const text = readFileSync(descriptor, 'utf8').replace(/\r?\n$/, '')
    return text === '' ? { fault: `the file ${path} is empty` } : { text }
  } finally {
    closeSync(descriptor)
  }
}
