#include "modeling/parallel/storage.hpp"

namespace hexad::modeling {

void free_storage(const at::Tensor& tensor) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(nullptr, storage->device()));
  storage->set_nbytes(0);
}

void allocate_storage(const at::Tensor& tensor) {
  if (has_storage(tensor)) return;
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(storage->allocator()->allocate(tensor.nbytes()));
  storage->set_nbytes(tensor.nbytes());
}

bool has_storage(const at::Tensor& tensor) { return tensor.storage().nbytes() == tensor.nbytes(); }

}  // namespace hexad::modeling
