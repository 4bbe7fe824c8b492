// Imports a trace with speedscope's own importer, taken out of its bundle, and prints what it found:
// one object per profile with its name and the number of spans in it.
//   node speedscope_import.mjs <folder of the speedscope package> <trace file>
import fs from "node:fs"
import path from "node:path"
import vm from "node:vm"

const [folder, trace] = process.argv.slice(2)
const release = path.join(folder, "dist", "release")
const bundle = fs.readdirSync(release).find(name => /^speedscope-\w+\.js$/.test(name))
let source = fs.readFileSync(path.join(release, bundle), "utf8")

// The bundle ends with drawing the page: the importer takes the place of that.
const drawing = source.lastIndexOf("console.log(`speedscope v")
const importing = /async function \w+\((\w+),(\w+)\)\{return\(await \w+\)\.importProfileGroupFromText\(\1,\2\)\}/.exec(source)
if (drawing < 0 || importing === null) throw new Error("this release of speedscope is built in another way")
const name = /async function (\w+)/.exec(importing[0])[1]
source = `${source.slice(0, drawing)};globalThis.importText = ${name}})();`

// What the page touches before it draws; nothing of it matters here.
const anything = new Proxy(function () {}, {
  get: (target, key) => (key === Symbol.toPrimitive ? () => "" : key === "length" ? 0 : anything),
  apply: () => anything,
  construct: () => anything,
  set: () => true,
})
const quiet = {log() {}, warn: console.error, error: console.error, trace() {}}
const sandbox = vm.createContext({
  console: quiet, self: anything, window: anything, document: anything, navigator: anything, location: anything, localStorage: anything,
  performance, TextDecoder, TextEncoder, URL, atob, btoa, setTimeout, clearTimeout, requestAnimationFrame: () => 0,
})
vm.runInContext(source, sandbox)

const group = await sandbox.importText(path.basename(trace), fs.readFileSync(trace, "utf8"))
const found = group.profiles.map(profile => {
  let spans = 0
  profile.forEachCall(() => spans++, () => {})
  return {name: profile.getName(), spans, unit: profile.getValueUnit?.() ?? profile.getWeightUnit?.()}
})
console.log(JSON.stringify(found))
