//! A loss plugin in Rust, by the C ABI alone: PPO's clipped loss, as examples/loss_c has it in C. The first half
//! declares what it uses of hexad/abi.h (structs in full, of the host table the part before its last use), the second
//! is the loss.
#![allow(non_camel_case_types, dead_code)]
use std::ffi::{c_char, c_void, CStr};
use std::panic::catch_unwind;

// ---- hexad/abi.h ----

type hexad_code = i32;
const OK: hexad_code = 0;
const INVALID_ARGUMENT: hexad_code = 3;
const INTERNAL: hexad_code = 13;
enum hexad_call {}
enum hexad_config {}

#[repr(C)]
struct hexad_host {
    struct_size: u32,
    abi_minor: u32,
    ctx: *mut c_void,
    version: *const c_char,
    set_error: extern "C" fn(*mut hexad_call, hexad_code, *const c_char, u64) -> hexad_code,
    log_enabled: extern "C" fn(i32) -> i32,
    log: extern "C" fn(*mut hexad_call, i32, *const c_char, u64),
    metric: extern "C" fn(*mut hexad_call, *const c_char, f64, f64, i32) -> hexad_code,
    config_i64: extern "C" fn(*mut hexad_call, *const hexad_config, *const c_char, *mut i64) -> hexad_code,
    config_f64: extern "C" fn(*mut hexad_call, *const hexad_config, *const c_char, *mut f64) -> hexad_code,
    // More follow; the table travels by pointer, so that nobody needs its end.
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DLDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}
const F32: DLDataType = DLDataType { code: 2, bits: 32, lanes: 1 };

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype: DLDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct hexad_named_tensor {
    name: *const c_char,
    tensor: *mut DLTensor,
    lengths: *const DLTensor,
    axis: i32,
    reserved: u32,
}

#[repr(C)]
struct hexad_tensor_spec {
    name: *const c_char,
    dtype: DLDataType,
    axis: i32,
    flags: u32,
    reserved: u32,
}
const AXIS_TOKEN: i32 = 1;
const DIFFERENTIABLE: u32 = 2;

#[repr(C)]
struct hexad_metric_spec {
    name: *const c_char,
    reduce: i32,
    reserved: u32,
}
const REDUCE_MEAN: i32 = 1;

#[repr(C)]
struct hexad_loss_batch {
    struct_size: u32,
    reserved: u32,
    num_sequences: i64,
    num_tokens: i64,
    cu_seqlens: *const i64,
    global_valid_tokens: f64,
    global_valid_sequences: f64,
    inputs: *const hexad_named_tensor,
    num_inputs: i64,
}

#[repr(C)]
struct hexad_loss_out {
    struct_size: u32,
    reserved: u32,
    loss: *mut DLTensor,
    grads: *const *mut DLTensor,
    num_grads: i64,
    metrics: *mut DLTensor,
}

type create_fn = extern "C" fn(*const hexad_host, *mut hexad_call, *const hexad_config, *mut *mut Loss) -> hexad_code;
type compute_fn = extern "C" fn(*mut Loss, *mut hexad_call, *const hexad_loss_batch, *mut hexad_loss_out) -> hexad_code;

/// Up to compute: struct_size says that the optional functions are not there.
#[repr(C)]
struct hexad_loss_vtable {
    struct_size: u32,
    num_inputs: u32,
    num_metrics: u32,
    reserved: u32,
    caps: u64,
    inputs: *const hexad_tensor_spec,
    metrics: *const hexad_metric_spec,
    create: create_fn,
    destroy: extern "C" fn(*mut Loss),
    compute: compute_fn,
}
const HOST_MEM: u64 = 1;

#[repr(C)]
struct hexad_plugin_desc {
    struct_size: u32,
    abi_minor: u32,
    min_host_minor: u32,
    kind: i32,
    name: *const c_char,
    version: *const c_char,
    license: *const c_char,
    build_id: *const c_char,
    backend: *const c_void,
    generator: *const c_void,
    loss: *const hexad_loss_vtable,
    next: *const hexad_plugin_desc,
}
const KIND_LOSS: i32 = 3;

// ---- the loss ----

struct Loss {
    host: *const hexad_host,
    eps: f64,
}

const fn text(bytes: &'static [u8]) -> *const c_char {
    bytes.as_ptr() as *const c_char
}

fn error(host: *const hexad_host, call: *mut hexad_call, code: hexad_code, message: &CStr) -> hexad_code {
    unsafe { ((*host).set_error)(call, code, message.as_ptr(), u64::MAX) }
}

extern "C" fn create(
    host: *const hexad_host,
    call: *mut hexad_call,
    config: *const hexad_config,
    out: *mut *mut Loss,
) -> hexad_code {
    let mut eps = 0.2;
    let code = unsafe { ((*host).config_f64)(call, config, text(b"clip_eps\0"), &mut eps) };
    if code != OK {
        return code; // the host has the text already
    }
    if !(eps > 0.0) {
        return error(host, call, INVALID_ARGUMENT, CStr::from_bytes_with_nul(b"clip_eps must be above 0\0").unwrap());
    }
    unsafe { *out = Box::into_raw(Box::new(Loss { host, eps })) };
    OK
}

extern "C" fn destroy(loss: *mut Loss) {
    drop(unsafe { Box::from_raw(loss) });
}

/// The elements of a contiguous host tensor.
unsafe fn view<'a, T>(tensor: *const DLTensor, size: usize) -> &'a mut [T] {
    let data = ((*tensor).data as *mut u8).add((*tensor).byte_offset as usize);
    if size == 0 { &mut [] } else { std::slice::from_raw_parts_mut(data as *mut T, size) }
}

fn run(loss: &Loss, batch: &hexad_loss_batch, out: &hexad_loss_out) {
    let (sequences, tokens) = (batch.num_sequences as usize, batch.num_tokens as usize);
    let input = |i: usize| unsafe { &*view::<f32>((*batch.inputs.add(i)).tensor, tokens) };
    let (logp, old, advantage, mask) = (input(0), input(1), input(2), input(3));
    let starts = unsafe { std::slice::from_raw_parts(batch.cu_seqlens, sequences + 1) };
    let grad = unsafe { view::<f32>(*out.grads, tokens) };
    let total = unsafe { &mut view::<f64>(out.loss, 1)[0] };
    let clip_frac = unsafe { view::<f64>(out.metrics, 2) }; // value, weight
    let (low, high) = (1.0 - loss.eps, 1.0 + loss.eps);
    for b in 0..sequences {
        // The first position of a sequence has no log-prob.
        for t in starts[b] as usize + 1..starts[b + 1] as usize {
            let (a, m) = (advantage[t] as f64, mask[t] as f64);
            let (r, w) = ((logp[t] as f64 - old[t] as f64).exp(), m / batch.global_valid_tokens);
            let clipped = (a > 0.0 && r > high) || (a < 0.0 && r < low);
            *total -= w * a * if !clipped { r } else if a > 0.0 { high } else { low };
            grad[t] = if clipped { 0.0 } else { (-w * a * r) as f32 };
            clip_frac[0] += if clipped { m } else { 0.0 };
            clip_frac[1] += m;
        }
    }
}

/// A panic must not cross the ABI: it becomes an error.
extern "C" fn compute(
    loss: *mut Loss,
    call: *mut hexad_call,
    batch: *const hexad_loss_batch,
    out: *mut hexad_loss_out,
) -> hexad_code {
    match catch_unwind(|| unsafe { run(&*loss, &*batch, &*out) }) {
        Ok(()) => OK,
        Err(_) => {
            let text = CStr::from_bytes_with_nul(b"compute panicked\0").unwrap();
            error(unsafe { (*loss).host }, call, INTERNAL, text)
        }
    }
}

/// Static tables hold raw pointers, to other static data only.
struct Static<T>(T);
unsafe impl<T> Sync for Static<T> {}

const fn input(name: &'static [u8], flags: u32) -> hexad_tensor_spec {
    hexad_tensor_spec { name: text(name), dtype: F32, axis: AXIS_TOKEN, flags, reserved: 0 }
}
static INPUTS: Static<[hexad_tensor_spec; 4]> =
    Static([
        input(b"logprobs\0", DIFFERENTIABLE),
        input(b"prev_logprobs\0", 0),
        input(b"advantages\0", 0),
        input(b"token_mask\0", 0),
    ]);
static METRICS: Static<[hexad_metric_spec; 1]> =
    Static([hexad_metric_spec { name: text(b"clip_frac\0"), reduce: REDUCE_MEAN, reserved: 0 }]);
static VTABLE: Static<hexad_loss_vtable> = Static(hexad_loss_vtable {
    struct_size: std::mem::size_of::<hexad_loss_vtable>() as u32,
    num_inputs: 4,
    num_metrics: 1,
    reserved: 0,
    caps: HOST_MEM,
    inputs: &INPUTS.0 as *const _ as *const hexad_tensor_spec,
    metrics: &METRICS.0 as *const _ as *const hexad_metric_spec,
    create,
    destroy,
    compute,
});
static DESC: Static<hexad_plugin_desc> = Static(hexad_plugin_desc {
    struct_size: std::mem::size_of::<hexad_plugin_desc>() as u32,
    abi_minor: 0,
    min_host_minor: 0,
    kind: KIND_LOSS,
    name: text(b"ppo_clip_rust\0"),
    version: text(b"1.0.0\0"),
    license: text(b"Apache-2.0\0"),
    build_id: text(b"\0"),
    backend: std::ptr::null(),
    generator: std::ptr::null(),
    loss: &VTABLE.0,
    next: std::ptr::null(),
});

#[no_mangle]
extern "C" fn hexad_plugin_query_v1(_host: *const hexad_host) -> *const hexad_plugin_desc {
    &DESC.0
}
