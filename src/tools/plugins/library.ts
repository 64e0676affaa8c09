/** The module that plugins import as `toolway`: the part of the public API for making tools and sinks. */

export { ServerError, ToolwayError } from '../../core/errors.ts'
export { resultOf, structuredResult, textResult } from '../../core/result.ts'
export { Json } from '../../json/json.ts'
export { defineTool } from '../define-tool.ts'
export { defineSink } from '../sinks/sink.ts'
