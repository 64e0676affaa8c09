import { type RpcErrorObject, ServerError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import { members } from '../core/json-text/scan.ts'

/**
 * A server's error about a resource as its caller may see it: where it names the resource, it names it as the caller
 * did. Only those bytes change, and everything else that was thrown is handed back as it is.
 */
export function underAskedUri(
  thrown: unknown,
  spelling: { readonly ofServer: string; readonly asked: string },
): unknown {
  const { ofServer, asked } = spelling
  if (!(thrown instanceof ServerError) || ofServer === asked) return thrown
  const { bytes } = thrown.error
  const data = members(bytes)?.get('data')
  const uri = data && members(data)?.get('uri')
  if (uri === undefined || uri[0] !== 0x22 || JSON.parse(uri.toString('utf8')) !== ofServer) return thrown
  // The URI is a slice of the error, so its place follows from where both begin.
  const at = uri.byteOffset - bytes.byteOffset
  const replaced = [bytes.subarray(0, at), Buffer.from(JSON.stringify(asked)), bytes.subarray(at + uri.length)]
  return new ServerError(Json.raw<RpcErrorObject>(Buffer.concat(replaced)))
}
