import { spawn } from 'node:child_process'

/** What opens an address, by system; each takes it as one argument, with no shell in between. */
const programs: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Shows a page to whoever sits here. Where that cannot be done nothing happens: the address was printed, too. */
export function openBrowser(url: string): void {
  const [program, ...args] = programs[process.platform] ?? ['xdg-open']
  if (!/^https?:/.test(url)) return
  spawn(program, [...args, url], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref()
}
